"""The keywords of a JSON schema: which there are, and how the plain ones are read."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from specli.errors import UsageError

_TYPES = ("string", "number", "integer", "boolean", "null", "object", "array")
SAYS_NOTHING = {
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "discriminator"),
}
BY_TYPE = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "format"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "number": {"minimum"},
    "boolean": set[str](),
    "null": set[str](),
}
_KEPT_TO = "docs/scripting.md lists what a schema can say"
_MOST = 1000  # repetitions that a grammar is written out for
_KNOWN = {"$ref", "anyOf", "oneOf", "allOf", "enum", "const", "type"}.union(*BY_TYPE.values())


def read_bounds(said: Mapping[str, Any], at: str) -> tuple[int | None, int | None]:
    """Return the least and the most integer that is allowed. Raises UsageError."""
    for key, value in said.items():
        if isinstance(value, bool) or not isinstance(value, int):
            refuse(f"{at}/{key}", f"is {value!r}, of an integer only whole numbers can be kept to")
    least = [
        said[key] + add for key, add in (("minimum", 0), ("exclusiveMinimum", 1)) if key in said
    ]
    most = [
        said[key] - add for key, add in (("maximum", 0), ("exclusiveMaximum", 1)) if key in said
    ]
    low, high = max(least, default=None), min(most, default=None)
    if low is not None and high is not None and low > high:
        refuse(at, "allows nothing: no integer is within its bounds")
    return low, high


def read_count(said: Mapping[str, Any], key: str, at: str) -> int | None:
    """Return a number of items or characters, None where it is not said. Raises UsageError."""
    value = said.get(key)
    if value is None and key not in said:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        refuse(f"{at}/{key}", f"is {value!r}, 0 to {_MOST} is wanted")
    return int(value)


def read_types(said: Mapping[str, Any], at: str) -> list[str]:
    """Return the types that are allowed, none where none is said. Raises UsageError."""
    found = said.get("type", [])
    types = found if isinstance(found, list) else [found]
    if not all(kind in _TYPES for kind in types) or (not types and "type" in said):
        refuse(f"{at}/type", f"is {found!r}, one of {', '.join(_TYPES)} is wanted")
    return types


def is_one_of(value: Any, types: Sequence[str]) -> bool:
    """Say whether a value is of one of some types."""
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int | float):
        return "number" in types or ("integer" in types and value == int(value))
    kinds = {str: "string", list: "array", dict: "object", type(None): "null"}
    return kinds[type(value)] in types


def check_only(said: Mapping[str, Any], allowed: set[str], at: str) -> None:
    """Raise UsageError where a keyword stands that is not allowed here."""
    for key in said:
        if key not in allowed:
            beside = sorted(allowed - {key} & said.keys())
            where = f" beside {beside[0]}" if beside and key in _KNOWN else ""
            refuse(f"{at}/{key}", f"cannot be kept to{where}", "leave it out, or use --grammar")


def refuse(at: str, what: str, hint: str = "") -> NoReturn:
    """Raise UsageError for what cannot be kept to. at: a JSON pointer."""
    place = json.dumps(at, ensure_ascii=False)[1:-1]  # a name may hold anything
    place = place if len(place) < 90 else f"...{place[-80:]}"
    raise UsageError(f"--json-schema: {place or 'the schema'} {what[:120]}", hint or _KEPT_TO)
