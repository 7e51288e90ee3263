"""A JSON schema, written anew in the words that its grammar understands; the rest is refused.

What a converter to a grammar does not know it leaves out without a word, and answers come that the
schema forbids. So every keyword is known here, or it is an error with its place. What comes out
may allow less than the schema does (no additional properties beside those that are named), never
more.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from specli.errors import UsageError
from specli.integer_range import integers

# The schemas that are written anew hold a rule of GBNF under this key, where there is no other way.
RULE = "specli-rule"
_TYPES = ("string", "number", "integer", "boolean", "null", "object", "array")
_ANYTHING = {"type": ["string", "number", "boolean", "null", "object", "array"]}
_SAYS_NOTHING = {
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "discriminator"),
}
_BY_TYPE = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "format"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "number": {"minimum"},
    "boolean": set[str](),
    "null": set[str](),
}
_FORMATS = ("date", "time", "date-time", "uuid")
_MOST = 1000  # repetitions that a grammar is written out for


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
            _refuse(at, f"is {what[:60]}")
        said = {
            key: value
            for key, value in schema.items()
            if key not in _SAYS_NOTHING and not key.startswith("x-")
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
                _only(said, {key, "type"} if key in ("enum", "const") else {key}, at)
                return make(said, at)
        return self._typed(said, at)

    def _reference(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        ref = said["$ref"]
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            _refuse(at, f"refers to {ref!r}, only places in the same schema (#/...) can be")
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
                _refuse(at, f"refers to {ref}, which is not there")
        return place

    def _any_of(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        return {"anyOf": self._each(said["anyOf"], f"{at}/anyOf")}

    def _one_of(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        ways = self._each(said["oneOf"], f"{at}/oneOf")
        full = [self._found[way["$ref"].split("/")[-1]] if "$ref" in way else way for way in ways]
        if not _exclude_each_other(full):
            _refuse(f"{at}/oneOf", "may hold more than once, which a grammar cannot see", _ANY_OF)
        return {"anyOf": ways}

    def _all_of(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        if not isinstance(said["allOf"], list) or len(said["allOf"]) != 1:
            _refuse(f"{at}/allOf", "cannot be kept to: only a list of one schema can")
        return self.schema(said["allOf"][0], f"{at}/allOf/0")

    def _each(self, schemas: Any, at: str) -> list[dict[str, Any]]:
        if not isinstance(schemas, list) or not schemas:
            _refuse(at, "is no list of schemas")
        return [self.schema(schema, f"{at}/{i}") for i, schema in enumerate(schemas)]

    def _enum(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        values = said["enum"] if "enum" in said else [said["const"]]
        if "enum" in said and "const" in said:
            values = [said["const"]]
        if not isinstance(values, list):
            _refuse(f"{at}/enum", "is no list")
        types = _types(said, at)
        values = [value for value in values if not types or _is_one_of(value, types)]
        if not values:
            _refuse(at, "allows nothing: no value of its enum has its type")
        return {"enum": values}

    def _typed(self, said: dict[str, Any], at: str) -> dict[str, Any]:
        types = _types(said, at)
        if not types:
            types = [kind for kind, keys in _BY_TYPE.items() if keys & said.keys()][:1]
        if not types:
            _only(said, set(), at)
        _only(said, {"type"}.union(*(_BY_TYPE[kind] for kind in types)), at)
        ways = [
            self._of_type(kind, {k: said[k] for k in _BY_TYPE[kind] & said.keys()}, at)
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
            return {RULE: integers(*_bounds(said, at))}
        if kind == "number" and said:
            if said["minimum"] != 0:
                _refuse(f"{at}/minimum", "of a number can only be 0", _INTEGER)
            return {RULE: _NOT_NEGATIVE}
        return {"type": kind}

    def _object(self, said: Mapping[str, Any], at: str) -> dict[str, Any]:
        named = said.get("properties", {})
        required = said.get("required", [])
        others = said.get("additionalProperties", True)
        if not isinstance(named, dict):
            _refuse(f"{at}/properties", "is no object")
        if not isinstance(required, list) or not all(isinstance(key, str) for key in required):
            _refuse(f"{at}/required", "is no list of names")
        named = {**named, **{key: others for key in required if key not in named}}
        properties = {
            key: self.schema(value, f"{at}/properties/{key}") for key, value in named.items()
        }
        if "" in properties:
            _refuse(f"{at}/properties", "has one without a name, which cannot be kept to")
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
        least, most = _count(said, "minItems", at) or 0, _count(said, "maxItems", at)
        items = said.get("items", True)
        first = items if isinstance(items, list) else said.get("prefixItems")
        if first is not None:
            if not isinstance(first, list) or not first:
                _refuse(f"{at}/prefixItems", "is no list of schemas")
            if not least <= len(first) <= (len(first) if most is None else most):
                _refuse(at, f"wants another number of items than the {len(first)} that it lists")
            return {"type": "array", "prefixItems": self._each(first, f"{at}/prefixItems")}
        if most == 0 or items is False:
            return {RULE: '"[" space "]" space'}
        if most is not None and most < least:
            _refuse(at, f"allows nothing: minItems is {least}, maxItems {most}")
        bounds = {"minItems": least} | ({} if most is None else {"maxItems": most})
        return {"type": "array", "items": self.schema(items, f"{at}/items"), **bounds}


def _string(said: Mapping[str, Any], at: str) -> dict[str, Any]:
    least, most = _count(said, "minLength", at) or 0, _count(said, "maxLength", at)
    if "format" in said:
        if said["format"] not in _FORMATS:
            wanted = ", ".join(_FORMATS)
            _refuse(f"{at}/format", f"{said['format']!r} cannot be kept to, these can: {wanted}")
        if len(said) > 1:
            _refuse(at, "has a format and a length: only one of them can be kept to")
        return {"type": "string", "format": said["format"]}
    if most is not None and most < least:
        _refuse(at, f"allows nothing: minLength is {least}, maxLength {most}")
    bounds = {"minLength": least} if least else {}
    return {"type": "string", **bounds, **({} if most is None else {"maxLength": most})}


def _bounds(said: Mapping[str, Any], at: str) -> tuple[int | None, int | None]:
    """Return the least and the most integer that is allowed."""
    for key, value in said.items():
        if isinstance(value, bool) or not isinstance(value, int):
            _refuse(f"{at}/{key}", f"is {value!r}, of an integer only whole numbers can be kept to")
    least = [
        said[key] + add for key, add in (("minimum", 0), ("exclusiveMinimum", 1)) if key in said
    ]
    most = [
        said[key] - add for key, add in (("maximum", 0), ("exclusiveMaximum", 1)) if key in said
    ]
    low, high = max(least, default=None), min(most, default=None)
    if low is not None and high is not None and low > high:
        _refuse(at, "allows nothing: no integer is within its bounds")
    return low, high


def _count(said: Mapping[str, Any], key: str, at: str) -> int | None:
    value = said.get(key)
    if value is None and key not in said:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        _refuse(f"{at}/{key}", f"is {value!r}, 0 to {_MOST} is wanted")
    return int(value)


def _types(said: Mapping[str, Any], at: str) -> list[str]:
    found = said.get("type", [])
    types = found if isinstance(found, list) else [found]
    if not all(kind in _TYPES for kind in types) or (not types and "type" in said):
        _refuse(f"{at}/type", f"is {found!r}, one of {', '.join(_TYPES)} is wanted")
    return types


def _is_one_of(value: Any, types: Sequence[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int | float):
        return "number" in types or ("integer" in types and value == int(value))
    kinds = {str: "string", list: "array", dict: "object", type(None): "null"}
    return kinds[type(value)] in types


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


def _only(said: Mapping[str, Any], allowed: set[str], at: str) -> None:
    for key in said:
        if key not in allowed:
            beside = sorted(allowed - {key} & said.keys())
            where = f" beside {beside[0]}" if beside and key in _KNOWN else ""
            _refuse(f"{at}/{key}", f"cannot be kept to{where}", "leave it out, or use --grammar")


_KNOWN = {"$ref", "anyOf", "oneOf", "allOf", "enum", "const", "type"}.union(*_BY_TYPE.values())
_ANY_OF = "anyOf can, or a required property with another const in each"
_INTEGER = "an integer can have any bounds"
_NOT_NEGATIVE = 'integral-part ("." decimal-part)? ([eE] [-+]? integral-part)? space'


def _refuse(at: str, what: str, hint: str = "") -> NoReturn:
    raise UsageError(f"--json-schema: {at or 'the schema'} {what}", hint)
