"""A JSON schema, written anew in the words that its grammar understands; the rest is refused.

What a converter to a grammar does not know it leaves out without a word, and answers come that the
schema forbids. So every keyword is known here, or it is an error with its place. What comes out
may allow less than the schema does (no additional properties beside those that are named), never
more.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from specli.errors import UsageError
from specli.integer_range import integers
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

# The schemas that are written anew hold a rule of GBNF under this key, where there is no other way.
RULE = "specli-rule"
_ANYTHING = {"type": ["string", "number", "boolean", "null", "object", "array"]}
_FORMATS = ("date", "time", "date-time", "uuid")


def read_schema(text: str) -> str:
    """Return a schema, given as JSON, in words that a grammar can be made of, as JSON again.

    Raises UsageError with the place of what is no schema, or cannot be kept to.
    """
    try:
        schema = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"--json-schema is not valid JSON: line {error.lineno}, column {error.colno}: "
            f"{error.msg}",
            'give a file, or JSON in quotes: \'{"type": "object", ...}\'',
        ) from None
    except RecursionError:
        raise UsageError("--json-schema is nested too deeply") from None
    return json.dumps(_Rewriter(schema).document())


class _Rewriter:
    """One schema document: what its references lead to is written anew only once."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._names: dict[str, str] = {}
        self._found: dict[str, Any] = {}

    def document(self) -> Any:
        """Return the whole document, with all that is referred to under $defs."""
        schema = self.schema(self._root, "")
        return {**schema, "$defs": self._found} if self._found else schema

    def schema(self, schema: Any, at: str) -> dict[str, Any]:
        """Return the schema that stands at a JSON pointer."""
        if schema is True or schema == {}:
            return dict(_ANYTHING)
        if not isinstance(schema, dict):
            what = "false, which allows nothing" if schema is False else f"no schema: {schema!r}"
            refuse(at, f"is {what[:60]}")
        said = {
            key: value
            for key, value in schema.items()
            if key not in SAYS_NOTHING and not key.startswith("x-")
        }
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

    def _reference(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        ref = said["$ref"]
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            refuse(at, f"refers to {ref!r}, only places in the same schema (#/...) can be")
        if ref not in self._names:
            self._names[ref] = name = f"specli-ref-{len(self._names)}"
            self._found[name] = self.schema(self._lead(ref, at), ref.removeprefix("#"))
        return {"$ref": f"#/$defs/{self._names[ref]}"}

    def _lead(self, ref: str, at: str) -> Any:
        place = self._root
        for step in ref.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, list) and step.isdecimal() and int(step) < len(place):
                place = place[int(step)]
            elif isinstance(place, dict) and step in place:
                place = place[step]
            else:
                refuse(at, f"refers to {ref}, which is not there")
        return place

    def _any_of(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        return {"anyOf": self._each(said["anyOf"], f"{at}/anyOf")}

    def _one_of(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        ways = self._each(said["oneOf"], f"{at}/oneOf")
        full = [self._found[way["$ref"].split("/")[-1]] if "$ref" in way else way for way in ways]
        if not _exclude_each_other(full):
            refuse(f"{at}/oneOf", "may hold more than once, which a grammar cannot see", _ANY_OF)
        return {"anyOf": ways}

    def _all_of(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        if not isinstance(said["allOf"], list) or len(said["allOf"]) != 1:
            refuse(f"{at}/allOf", "cannot be kept to: only a list of one schema can")
        return self.schema(said["allOf"][0], f"{at}/allOf/0")

    def _each(self, schemas: Any, at: str) -> list[dict[str, Any]]:
        if not isinstance(schemas, list) or not schemas:
            refuse(at, "is no list of schemas")
        return [self.schema(schema, f"{at}/{i}") for i, schema in enumerate(schemas)]

    def _enum(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        values = said["enum"] if "enum" in said else [said["const"]]
        if "enum" in said and "const" in said:
            values = [said["const"]]
        if not isinstance(values, list):
            refuse(f"{at}/enum", "is no list")
        types = read_types(said, at)
        values = [value for value in values if not types or is_one_of(value, types)]
        if not values:
            refuse(at, "allows nothing: no value of its enum has its type")
        return {"enum": values}

    def _typed(self, said: dict[str, Any], at: str) -> dict[str, Any]:
        types = read_types(said, at)
        if not types:
            types = [kind for kind, keys in BY_TYPE.items() if keys & said.keys()][:1]
        if not types:
            check_only(said, set(), at)
        check_only(said, {"type"}.union(*(BY_TYPE[kind] for kind in types)), at)
        ways = [
            self._of_type(kind, {k: said[k] for k in BY_TYPE[kind] & said.keys()}, at)
            for kind in types
        ]
        return ways[0] if len(ways) == 1 else {"anyOf": ways}

    def _of_type(self, kind: str, said: dict[str, Any], at: str) -> dict[str, Any]:
        if kind == "object":
            return self._object(said, at)
        if kind == "array":
            return self._array(said, at)
        if kind == "string":
            return _string(said, at)
        if kind == "integer" and said:
            return {RULE: integers(*read_bounds(said, at))}
        if kind == "number" and said:
            if said["minimum"] != 0:
                refuse(f"{at}/minimum", "of a number can only be 0", _INTEGER)
            return {RULE: _NOT_NEGATIVE}
        return {"type": kind}

    def _object(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        named = said.get("properties", {})
        required = said.get("required", [])
        others = said.get("additionalProperties", True)
        if not isinstance(named, dict):
            refuse(f"{at}/properties", "is no object")
        if not isinstance(required, list) or not all(isinstance(key, str) for key in required):
            refuse(f"{at}/required", "is no list of names")
        named = {**named, **{key: others for key in required if key not in named}}
        properties = {
            key: self.schema(value, f"{at}/properties/{key}") for key, value in named.items()
        }
        if "" in properties:
            refuse(f"{at}/properties", "has one without a name, which cannot be kept to")
        if properties or others is False:  # an additional one could have the name of one of these
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

    def _array(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        least, most = read_count(said, "minItems", at) or 0, read_count(said, "maxItems", at)
        items = said.get("items", True)
        first = items if isinstance(items, list) else said.get("prefixItems")
        if first is not None:
            if not isinstance(first, list) or not first:
                refuse(f"{at}/prefixItems", "is no list of schemas")
            if not least <= len(first) <= (len(first) if most is None else most):
                refuse(at, f"wants another number of items than the {len(first)} that it lists")
            return {"type": "array", "prefixItems": self._each(first, f"{at}/prefixItems")}
        if most == 0 or items is False:
            return {RULE: '"[" space "]" space'}
        if most is not None and most < least:
            refuse(at, f"allows nothing: minItems is {least}, maxItems {most}")
        bounds = {"minItems": least} | ({} if most is None else {"maxItems": most})
        return {"type": "array", "items": self.schema(items, f"{at}/items"), **bounds}


def _string(said: Mapping[str, Any], at: str) -> dict[str, Any]:
    least, most = read_count(said, "minLength", at) or 0, read_count(said, "maxLength", at)
    if "format" in said:
        if said["format"] not in _FORMATS:
            wanted = ", ".join(_FORMATS)
            refuse(f"{at}/format", f"{said['format']!r} cannot be kept to, these can: {wanted}")
        if len(said) > 1:
            refuse(at, "has a format and a length: only one of them can be kept to")
        return {"type": "string", "format": said["format"]}
    if most is not None and most < least:
        refuse(at, f"allows nothing: minLength is {least}, maxLength {most}")
    bounds = {"minLength": least} if least else {}
    return {"type": "string", **bounds, **({} if most is None else {"maxLength": most})}


def _exclude_each_other(ways: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether no value can be of two of these schemas: by type, by a constant property."""
    kinds = [way.get("type") for way in ways]
    if None not in kinds and len(set(kinds)) == len(kinds) and set(kinds) != {"number", "integer"}:
        return not {"number", "integer"} <= set(kinds)
    for key in ways[0].get("properties", {}):
        seen: list[Any] = []
        for way in ways:
            value = way.get("properties", {}).get(key, {}).get("enum", [])
            seen += value if key in way.get("required", []) else []
            if not value or key not in way.get("required", []):
                break
        else:
            if all(seen.count(value) == 1 for value in seen):
                return True
    return False


_ANY_OF = "anyOf can, or a required property with another const in each"
_INTEGER = "an integer can have any bounds"
_NOT_NEGATIVE = 'integral-part ("." decimal-part)? ([eE] [-+]? integral-part)? space'
