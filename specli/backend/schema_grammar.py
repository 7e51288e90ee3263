"""A JSON schema as GBNF."""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any

from specli.backend.grammar import check_gbnf
from specli.errors import UsageError
from specli.json_schema import NOT_NEGATIVE, RULE, read_schema

# One character of a string is one of the text: no half of a pair, which two escapes would be; and
# none below U+0020, which JSON wants escaped.
_CHAR = (
    r'[^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | '
    r'"u" ([0-9a-cA-CefEF] [0-9a-fA-F] | [dD] [0-7]) [0-9a-fA-F] [0-9a-fA-F])'
)
# What a number can be is no more than a double holds: a reader takes no other for it.
_FIXED = {
    "space": '" "?',
    "boolean": '("true" | "false") space',
    "null": '"null" space',
    "natural": '"0" | [1-9] [0-9]{0,15}',
    "integer": '"-"? natural space',
    "number": f'"-"? {NOT_NEGATIVE}',
    "char": _CHAR,
    "string": r'"\"" char* "\"" space',
    "pair": 'string ":" space value',
    "object": '"{" space (pair ("," space pair)*)? "}" space',
    "array": '"[" space (value ("," space value)*)? "]" space',
    "value": "object | array | string | number | boolean | null",
    "hex": "[0-9a-fA-F]",
    "uuid": r'"\"" hex{8} ("-" hex{4}){3} "-" hex{12} "\"" space',
    "day": '"0" [1-9] | "1" [0-9] | "2" [0-8]',
    "long-month": '"0" [13578] | "1" [02]',
    "month": '"0" [13-9] | "1" [0-2]',
    "month-day": '("0" [1-9] | "1" [0-2]) "-" day | month "-" ("29" | "30") | long-month "-31"',
    "leap": '"0" [48] | [2468] [048] | [13579] [26]',
    "leap-century": '"1" [26] | [2468] [048] | [3579] [26]',
    "leap-year": '[1-9] [0-9] leap | leap-century "00"',
    "day-of-year": '[1-9] [0-9]{3} "-" month-day | leap-year "-02-29"',
    "hour": '[01] [0-9] | "2" [0-3]',
    "zone": '"Z" | [+-] hour ":" [0-5] [0-9]',
    "time-of-day": 'hour ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{3})? zone',
    "date": r'"\"" day-of-year "\"" space',
    "time": r'"\"" time-of-day "\"" space',
    "date-time": r'"\"" day-of-year "T" time-of-day "\"" space',
}
_DEEPEST = 50  # parentheses of a list of constants


def schema_to_gbnf(text: str) -> str:
    """Return the grammar of a schema, given as JSON. Raises UsageError, see read_schema."""
    document = read_schema(text)
    try:
        grammar = _Writer().grammar(document.root, document.found)
    except RecursionError:
        raise UsageError(
            "--json-schema is nested too deeply", "put parts of it under $defs"
        ) from None
    try:
        check_gbnf(grammar)
    except UsageError as error:
        why = error.message.removeprefix("the grammar ")
        raise UsageError(f"--json-schema: its grammar {why}", "let the schema say less") from None
    return grammar


class _Writer:
    """Writes rules. Their names are numbers behind a letter: no property can be called so."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}  # texts to names: what is the same is written once

    def grammar(self, root: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> str:
        """Return all rules."""
        rules = [f"root ::= {self._name(root)}"]
        rules += [f"r{name} ::= {self._name(node)}" for name, node in found.items()]
        rules += [f"{name} ::= {rule}" for rule, name in self._rules.items()]
        return "\n".join([*rules, *(f"{name} ::= {rule}" for name, rule in _FIXED.items())])

    def _name(self, node: Mapping[str, Any]) -> str:
        """Return the name of the rule of a schema."""
        if "$ref" in node:
            return f"r{node['$ref']}"
        if "anyOf" in node:
            return self._rule(" | ".join([self._name(way) for way in node["anyOf"]]))
        if "enum" in node:
            texts = {json.dumps(value, ensure_ascii=False) for value in node["enum"]}
            return self._rule(_one_of(sorted(texts), 0))
        if RULE in node:
            return self._rule(node[RULE])
        kind = node["type"]
        if kind == "object" and "additionalProperties" in node:
            return self._object(node)
        if kind == "array" and len(node) > 1:
            return self._array(node)
        if kind == "string":
            return self._string(node)
        return kind if isinstance(kind, str) else "value"

    def _rule(self, text: str) -> str:
        return self._rules.setdefault(text, f"v{len(self._rules)}")

    def _object(self, node: Mapping[str, Any]) -> str:
        if "properties" not in node:
            pair = self._rule(f'string ":" space {self._name(node["additionalProperties"])}')
            return self._rule(f'"{{" space ({pair} ("," space {pair})*)? "}}" space')
        more = rest = ""  # what stands from a property on: one at least, or what follows another
        is_optional = True
        for key, value in reversed(node["properties"].items()):
            name = _literal(json.dumps(key, ensure_ascii=False))
            this = f'{name} space ":" space {self._name(value)} {rest}'
            if key in node["required"]:
                is_optional = False
                more = self._rule(this)
            else:
                more = self._rule(f"{this} | {more}" if more else this)
            rest = self._rule(f'("," space {more})?' if is_optional else f'"," space {more}')
        inner = f"{more}?" if more and is_optional else more
        return self._rule(f'"{{" space {inner} "}}" space')

    def _array(self, node: Mapping[str, Any]) -> str:
        if "prefixItems" in node:
            items = ' "," space '.join([self._name(item) for item in node["prefixItems"]])
            return self._rule(f'"[" space {items} "]" space')
        item, least, most = self._name(node["items"]), node["minItems"], node.get("maxItems")
        times = _times(max(least - 1, 0), None if most is None else most - 1)
        items = f'{item} ("," space {item}){times}'
        return self._rule(f'"[" space {items if least else f"({items})?"} "]" space')

    def _string(self, node: Mapping[str, Any]) -> str:
        if "format" in node:
            return str(node["format"])
        least, most = node.get("minLength", 0), node.get("maxLength")
        if not least and most is None:
            return "string"
        return self._rule(rf'"\"" char{_times(least, most)} "\"" space')


def _one_of(texts: Sequence[str], depth: int) -> str:
    """Return the alternatives of texts, in order; what they begin with alike stands once.

    Ten thousand would else be as many ways to begin.
    """
    ways: list[str] = []
    for _, group in groupby(texts, lambda text: text[:1]):
        alike = list(group)
        if len(alike) == 1 or depth == _DEEPEST:
            ways += map(_literal, alike)
            continue
        pairs = zip(alike[0], alike[-1], strict=False)
        n_alike = len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])
        rest = _one_of([text[n_alike:] for text in alike], depth + 1)
        ways.append(f"{_literal(alike[0][:n_alike])} ({rest})")
    return " | ".join(ways)


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def _literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
