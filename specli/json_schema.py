"""A JSON schema, written anew in the words that its grammar understands; the rest is refused.

What a converter to a grammar does not know it leaves out without a word, and answers come that the
schema forbids. So every keyword is known here, or it is an error with its place. What comes out
may allow less than the schema does (no additional properties beside those that are named), never
more.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias
from urllib.parse import unquote

from specli.errors import UsageError
from specli.integer_range import integers
from specli.json_text import read_json
from specli.schema_keywords import (
    BY_TYPE,
    SAYS_NOTHING,
    check_only,
    is_one_of,
    read_bounds,
    read_count,
    read_types,
    refuse,
)
from specli.schema_overlap import UNTYPED, ends, exclude_each_other, leads_directly

Node: TypeAlias = dict[str, Any]
# The schemas that are written anew hold a rule of GBNF under this key, where there is no other way.
RULE = "specli-rule"
_ANYTHING = {"type": ["string", "number", "boolean", "null", "object", "array"]}
_FORMATS = ("date", "time", "date-time", "uuid")


@dataclass(frozen=True, slots=True)
class Document:
    """A schema in words that a grammar can be made of. found: what its $refs name."""

    root: Node
    found: dict[str, Node]


def read_schema(text: str) -> Document:
    """Return a schema, given as JSON, in words that a grammar can be made of.

    Raises UsageError with the place of what is no schema, or cannot be kept to.
    """
    try:
        return _Rewriter(read_json(text, "--json-schema")).document()
    except RecursionError:
        raise UsageError("--json-schema is nested too deeply", _LESS_DEEP) from None


class _Rewriter:
    """One schema document: what its references lead to is written anew only once."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._names: dict[str, str] = {}
        self._found: dict[str, Node] = {}
        self._one_ofs: list[tuple[str, list[Node]]] = []

    def document(self) -> Document:
        """Return the whole document, with all that is referred to."""
        root = self.schema(self._root, "")
        self._check_ends()
        for at, ways in self._one_ofs:
            if not exclude_each_other(ways, self._found):
                refuse(at, "may hold more than once, which a grammar cannot see", _ANY_OF)
        return Document(root, self._found)

    def _check_ends(self) -> None:
        """Raise UsageError where a reference leads to itself with nothing between."""
        graph = {name: leads_directly(node) for name, node in self._found.items()}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            ref = next(ref for ref, name in self._names.items() if name == error.args[1][0])
            refuse(ref.removeprefix("#"), "refers to itself, so it says nothing", _BETWEEN)
        ending: set[str] = set()
        while more := {n for n in self._found.keys() - ending if ends(self._found[n], ending)}:
            ending |= more
        for ref, name in self._names.items():
            if name not in ending:
                refuse(ref.removeprefix("#"), "allows nothing: what begins by it never ends", _ENDS)

    def schema(self, schema: Any, at: str) -> Node:
        """Return the schema that stands at a JSON pointer."""
        if schema is True:
            return dict(_ANYTHING)
        if not isinstance(schema, dict):
            what = "false, which allows nothing" if schema is False else f"no schema: {schema!r}"
            refuse(at, f"is {what[:60]}", _ALLOW)
        if at and "$id" in schema:
            refuse(f"{at}/$id", "gives references another meaning, which is not followed", _NO_ID)
        said = {
            key: value
            for key, value in schema.items()
            if key not in SAYS_NOTHING and not key.startswith("x-")
        }
        if not said:
            return dict(_ANYTHING)
        for key, make in (
            ("$ref", self._reference),
            ("anyOf", self._any_of),
            ("oneOf", self._one_of),
            ("allOf", self._all_of),
            ("enum", self._enum),
            ("const", self._enum),
        ):
            if key in said:
                check_only(said, {key, "type"} if key in ("enum", "const") else {key}, at)
                return make(said, at)
        return self._typed(said, at)

    def _reference(self, said: Mapping[str, Any], at: str) -> Node:
        ref = said["$ref"]
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            refuse(at, f"refers to {ref!r}, only places in the same schema (#/...) can be", _COPY)
        if ref not in self._names:
            self._names[ref] = name = str(len(self._names))
            self._found[name] = self.schema(self._lead(ref, at), ref.removeprefix("#"))
        return {"$ref": self._names[ref]}

    def _lead(self, ref: str, at: str) -> Any:
        place = self._root
        for step in ref.split("/")[1:]:
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(place, list) and _INDEX.fullmatch(step) and int(step) < len(place):
                place = place[int(step)]
            elif isinstance(place, dict) and step in place:
                place = place[step]
            else:
                refuse(at, f"refers to {ref[:60]}, which is not there", "look for a misspelt name")
            if isinstance(place, dict) and isinstance(place.get("$id"), str):
                refuse(at, f"refers into {ref[:60]}, which has an $id of its own", _NO_ID)
        return place

    def _any_of(self, said: Mapping[str, Any], at: str) -> Node:
        return {"anyOf": self._each(said["anyOf"], f"{at}/anyOf")}

    def _one_of(self, said: Mapping[str, Any], at: str) -> Node:
        ways = self._each(said["oneOf"], f"{at}/oneOf")
        self._one_ofs.append((f"{at}/oneOf", ways))
        return {"anyOf": ways}

    def _all_of(self, said: Mapping[str, Any], at: str) -> Node:
        if not isinstance(said["allOf"], list) or len(said["allOf"]) != 1:
            refuse(f"{at}/allOf", "cannot be kept to: only a list of one schema can")
        return self.schema(said["allOf"][0], f"{at}/allOf/0")

    def _each(self, schemas: Any, at: str) -> list[Node]:
        if not isinstance(schemas, list) or not schemas:
            refuse(at, "is no list of schemas")
        return [self.schema(schema, f"{at}/{i}") for i, schema in enumerate(schemas)]

    def _enum(self, said: Mapping[str, Any], at: str) -> Node:
        values = said["enum"] if "enum" in said else [said["const"]]
        if "enum" in said and "const" in said:
            values = [said["const"]]
        if not isinstance(values, list):
            refuse(f"{at}/enum", "is no list")
        types = read_types(said, at)
        values = [value for value in values if not types or is_one_of(value, types)]
        if not values:
            refuse(at, "allows nothing: no value of its enum has its type", _ALLOW)
        return {"enum": values}

    def _typed(self, said: dict[str, Any], at: str) -> Node:
        types = read_types(said, at)
        if not types:
            types = [kind for kind, keys in BY_TYPE.items() if keys & said.keys()][:1]
        if not types:
            check_only(said, set(), at)
        allowed = {"type"}.union(*(BY_TYPE[kind] for kind in types))
        if "number" in types:  # what bounds integers bounds numbers, too
            allowed -= BY_TYPE["integer"] - BY_TYPE["number"]
        check_only(said, allowed, at)
        ways = [
            self._of_type(kind, {k: said[k] for k in BY_TYPE[kind] & said.keys()}, at)
            for kind in types
        ]
        if "type" not in said:
            return {**ways[0], UNTYPED: True}
        return ways[0] if len(ways) == 1 else {"anyOf": ways}

    def _of_type(self, kind: str, said: dict[str, Any], at: str) -> Node:
        if kind == "object":
            return self._object(said, at)
        if kind == "array":
            return self._array(said, at)
        if kind == "string":
            return _string(said, at)
        if kind == "integer" and said:
            return {"type": kind, RULE: integers(*read_bounds(said, at))}
        if kind == "number" and said:
            if isinstance(said["minimum"], bool) or said["minimum"] != 0:
                refuse(f"{at}/minimum", "of a number can only be 0", _INTEGER)
            return {"type": kind, RULE: NOT_NEGATIVE}
        return {"type": kind}

    def _object(self, said: Mapping[str, Any], at: str) -> Node:
        named = said.get("properties", {})
        required = said.get("required", [])
        others = said.get("additionalProperties", True)
        if not isinstance(named, dict):
            refuse(f"{at}/properties", "is no object")
        if not isinstance(required, list) or not all(isinstance(key, str) for key in required):
            refuse(f"{at}/required", "is no list of names")
        named = {**named, **{key: others for key in required if key not in named}}
        properties = {
            key: self.schema(value, f"{at}/properties/{key}")
            for key, value in named.items()
            if value is not False or key in required  # others are closed in any case
        }
        if named or others is False:  # an additional one could have the name of one of these
            return {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            }
        if others is True or others == {}:
            return {"type": "object"}
        values = self.schema(others, f"{at}/additionalProperties")
        return {"type": "object", "additionalProperties": values}

    def _array(self, said: Mapping[str, Any], at: str) -> Node:
        least, most = read_count(said, "minItems", at) or 0, read_count(said, "maxItems", at)
        items = said.get("items", True)
        if isinstance(items, list) and "prefixItems" in said:
            refuse(f"{at}/items", "is a list beside prefixItems", "name the items in one of them")
        first = items if isinstance(items, list) else said.get("prefixItems")
        if items is False and "prefixItems" not in said:
            most = 0
        if most is not None and most < least:
            refuse(at, f"allows nothing: at least {least} items, at most {most}", _ALLOW)
        if "prefixItems" in said or isinstance(items, list):
            if not isinstance(first, list) or not first:
                refuse(f"{at}/prefixItems", "is no list of schemas", _ALLOW)
            if not isinstance(items, list):
                self._check_more(items, at)
            if not least <= len(first) <= (len(first) if most is None else most):
                refuse(at, f"wants another number of items than the {len(first)} that it lists")
            return {"type": "array", "prefixItems": self._each(first, f"{at}/prefixItems")}
        if most == 0:
            if items is not False:
                self.schema(items, f"{at}/items")
            return {"type": "array", RULE: '"[" space "]" space'}
        bounds = {"minItems": least} | ({} if most is None else {"maxItems": most})
        return {"type": "array", "items": self.schema(items, f"{at}/items"), **bounds}

    def _check_more(self, items: Any, at: str) -> None:
        """Raise UsageError where what further items have to be is no schema."""
        if not isinstance(items, dict | bool):
            refuse(f"{at}/items", f"is no schema: {items!r}"[:60], _ALLOW)


def _string(said: Mapping[str, Any], at: str) -> Node:
    least, most = read_count(said, "minLength", at) or 0, read_count(said, "maxLength", at)
    if "format" in said:
        if said["format"] not in _FORMATS:
            wanted = ", ".join(_FORMATS)
            refuse(f"{at}/format", f"{said['format']!r} cannot be kept to, these can: {wanted}")
        if len(said) > 1:
            refuse(at, "has a format and a length: only one of them can be kept to")
        return {"type": "string", "format": said["format"]}
    if most is not None and most < least:
        refuse(at, f"allows nothing: minLength is {least}, maxLength {most}", _ALLOW)
    bounds = {"minLength": least} if least else {}
    return {"type": "string", **bounds, **({} if most is None else {"maxLength": most})}


_INDEX = re.compile("0|[1-9][0-9]{0,6}")
_ANY_OF = 'anyOf can; or name a "type" in each, or require a property with another const in each'
_INTEGER = "an integer can have any bounds"
_ALLOW = "give a schema that something follows"
_ENDS = "do not require a part that holds the whole again"
_BETWEEN = "let an object or an array stand between"
_NO_ID = "leave $id out, and refer to places by #/..."
_COPY = "copy what it refers to under $defs"
_LESS_DEEP = "put parts of it under $defs"
NOT_NEGATIVE = 'natural ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})? space'
