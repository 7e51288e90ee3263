"""Which values schemas have, and share: oneOf can be kept to where they share none.

Schemas are what json_schema has made of them. They may allow less than what was given, so what is
compared holds of the given ones, too: types, where they were named; enums; required properties.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations
from typing import Any, TypeAlias

Node: TypeAlias = Mapping[str, Any]
UNTYPED = "specli-untyped"  # a schema that did not name its type lets other types through
_MOST_PAIRS = 100_000
_ALL = frozenset({"string", "integer", "fraction", "boolean", "null", "object", "array"})


def exclude_each_other(ways: Sequence[Node], found: Mapping[str, Node]) -> bool:
    """Say whether it is certain that no value is one of two of these schemas."""
    values = [_values(way, found) for way in ways]
    if all(value is not None for value in values):
        keys = [key for value in values if value is not None for key in value]
        return len(set(keys)) == len(keys)
    leaves = [list(_leaves(way, found, set())) for way in ways]
    if sum(map(len, leaves)) ** 2 > _MOST_PAIRS:
        return False
    return all(
        _differ(one, other, found)
        for some, others in combinations(leaves, 2)
        for one in some
        for other in others
    )


def leads_directly(node: Node) -> set[str]:
    """Return the names that a schema refers to with nothing (no object, no array) between."""
    if "$ref" in node:
        return {node["$ref"]}
    return {name for way in node.get("anyOf", []) for name in leads_directly(way)}


def ends(node: Node, ending: Set[str]) -> bool:
    """Say whether some value follows a schema. ending: names of schemas that some value follows."""
    if "$ref" in node:
        return node["$ref"] in ending
    if "anyOf" in node:
        return any(ends(way, ending) for way in node["anyOf"])
    properties = node.get("properties", {})
    parts = [*node.get("prefixItems", []), *(properties[key] for key in node.get("required", []))]
    if node.get("minItems"):
        parts.append(node["items"])
    return all(ends(part, ending) for part in parts)


def _leaves(node: Node, found: Mapping[str, Node], seen: set[str]) -> Iterator[Node]:
    if "$ref" in node:
        if node["$ref"] not in seen:
            seen.add(node["$ref"])
            yield from _leaves(found[node["$ref"]], found, seen)
    elif "anyOf" in node:
        for way in node["anyOf"]:
            yield from _leaves(way, found, seen)
    else:
        yield node


def _differ(one: Node, other: Node, found: Mapping[str, Node]) -> bool:
    if not _kinds(one) & _kinds(other):
        return True
    pairs = [(one, other)]
    for name in {*one.get("required", [])} & {*other.get("required", [])}:
        pairs.append((one["properties"][name], other["properties"][name]))
    for some, others in pairs:
        mine, theirs = _values(some, found), _values(others, found)
        if mine is not None and theirs is not None and not mine & theirs:
            return True
    return False


def _values(node: Node, found: Mapping[str, Node]) -> frozenset[Any] | None:
    """Return the only values that a schema allows; None where they are not listed."""
    result: set[Any] = set()
    for leaf in _leaves(node, found, set()):
        if "enum" not in leaf:
            return None
        result.update(map(_key, leaf["enum"]))
    return frozenset(result)


def _kinds(node: Node) -> frozenset[str]:
    if "enum" in node:
        return frozenset(_kind(value) for value in node["enum"])
    if UNTYPED in node or not isinstance(node["type"], str):
        return _ALL
    return frozenset({"integer", "fraction"} if node["type"] == "number" else {node["type"]})


def _kind(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "integer" if value == int(value) else "fraction"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _key(value: Any) -> Any:
    """Return what is equal for values that JSON takes for equal: 1 and 1.0, but not 1 and true."""
    if isinstance(value, list):
        return ("array", *map(_key, value))
    if isinstance(value, dict):
        return "object", frozenset((name, _key(inner)) for name, inner in value.items())
    return _kind(value).replace("fraction", "integer"), value
