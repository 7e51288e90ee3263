"""JSON schemas as grammars: what comes out follows them, what cannot be kept to is refused."""

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

from specli.backend.grammar import LlamaGrammar
from specli.backend.model import LlamaModel
from specli.backend.schema_grammar import schema_to_gbnf
from specli.errors import UsageError
from specli.integer_range import integers
from tests import tiny_gguf

REF = {"$ref": "#/$defs/name"}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "null"}}},
    {"type": "object", "required": ["a"], "additionalProperties": {"enum": [1, 2]}},
    {"type": "object", "additionalProperties": {"const": 1}},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
    {"type": "array", "prefixItems": [{"const": 1}, {"type": "null"}], "minItems": 2},
    {"type": "array", "items": {}, "maxItems": 0},
    {"enum": ['say "hi"', "back\\slash", "é", "\x01", None, {"a": [1]}]},
    {"type": ["string", "null"], "maxLength": 3},
    {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "number", "minimum": 0},
    {"type": "integer", "exclusiveMinimum": -20, "maximum": 105},
    {"type": "string", "format": "date"},
    {"anyOf": [{"type": "boolean"}, {"type": "object", "properties": {"x": {"const": "y"}}}]},
    {"oneOf": [{"type": "boolean"}, {"enum": ["no"], "type": "string"}][:1]},
    {
        "oneOf": [
            {"properties": {"kind": {"const": c}, c: {"type": "boolean"}}, "required": ["kind", c]}
            for c in "ab"
        ]
    },
    # Names that the converter has for itself, and those of definitions, stand for themselves.
    {
        "type": "object",
        "properties": {"name": {"enum": [1]}, "root": REF, "string": {"enum": [2]}, "é a": REF},
        "required": ["name", "root", "string", "é a"],
        "$defs": {"name": {"enum": ["it"]}},
    },
    {
        "type": "object",
        "properties": {"root": {"type": "integer", "minimum": 1, "maximum": 2}},
        "required": ["root"],
        "title": "all that says nothing",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "x-own": 1,
    },
    {"type": "array", "items": {"allOf": [{"$ref": "#"}]}, "maxItems": 2},
    {  # a list, linked
        "type": "object",
        "properties": {"v": {"const": 1}, "next": {"oneOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["next"],
    },
    {"oneOf": [{"const": c} for c in ("a", "b", 1, True, None, [1], {"a": 2})]},
    # Names like those of rules.
    {
        "properties": {
            "specli-ref-0": {"enum": [3]},
            "r0": {"enum": [1]},
            "v0": REF,
            "root": {"enum": [2]},
            "": {"type": "null"},
            "never": False,
        },
        "required": ["", "specli-ref-0", "r0", "v0", "root"],
        "type": "object",
        "$defs": {"name": {"enum": ["it"]}},
    },
    {"properties": {"$ref": {"const": {"$ref": "x"}}, "$id": {"const": 1}}, "type": "object"},
    {"$ref": "#/$defs/a%25~1b", "$defs": {"a%/b": {"const": 1}}},
    {"type": "object", "properties": {f"p{i}": {"type": "null"} for i in range(200)}},
    {"enum": [f"value {i}" for i in range(10_000)]},
    {"items": {"anyOf": [{"$ref": "#"}, {"const": 1}]}, "type": "array", "maxItems": 2},
    {"type": "number"},
    {
        "type": "object",
        "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}},
        "required": ["b"],
    },
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tiny_gguf.write_llama(tmp_path_factory.mktemp("schema") / "model.gguf")
    with LlamaModel(path, vocabulary_only=True) as model:
        yield model


def written(grammar: LlamaGrammar, model: LlamaModel, chance: random.Random) -> str:
    """Return a text that draws at random among what the grammar allows, and tends to its end."""
    vocabulary = model.vocabulary
    everything = np.arange(vocabulary.n_tokens, dtype=np.int32)
    grammar.begin(0)
    answer: list[int] = []
    for n in range(600):
        may = grammar.allowed(everything, answer)
        assert may is not None
        tokens = np.flatnonzero(may).tolist()
        assert tokens, f"nothing may follow {answer}"
        ends = [token for token in tokens if token in vocabulary.eog]
        if ends and (len(ends) == len(tokens) or n > 20 or chance.random() < 0.3):
            break
        closing = [t for t in tokens if vocabulary.piece(t)[:1] in (b'"', b"}", b"]")]
        others = [token for token in tokens if token not in ends]
        answer.append(chance.choice(closing if closing and chance.random() < 0.3 else others))
    return b"".join(vocabulary.piece(token) for token in answer).decode("utf-8", "replace")


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:60])
def test_whatever_the_grammar_allows_follows_the_schema(
    schema: dict[str, Any], model: LlamaModel
) -> None:
    chance = random.Random(0)
    with LlamaGrammar(model.vocabulary, schema_to_gbnf(json.dumps(schema))) as grammar:
        for _ in range(6):
            text = written(grammar, model, chance)
            jsonschema.validate(json.loads(text), schema, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ('{"type": "object"', "is not valid JSON: line 1"),
        ('{"type": "str"}', "/type is 'str'"),
        ('{"type": "string", "pattern": "^a$"}', "/pattern cannot be kept to"),
        ('{"type": "string", "format": "email"}', "/format 'email' cannot be kept to"),
        ('{"type": "number", "maximum": 3}', "/maximum cannot be kept to"),
        ('{"type": "number", "minimum": 3}', "/minimum of a number can only be 0"),
        ('{"properties": {"a": {"type": "array", "uniqueItems": true}}}', "/properties/a/unique"),
        ('{"type": "object", "minProperties": 1}', "/minProperties cannot"),
        ('{"type": "string", "maxlength": 3}', "/maxlength cannot be kept to"),
        ('{"oneOf": [{"type": "integer"}, {"type": "number"}]}', "/oneOf may hold more than once"),
        ('{"allOf": [{"type": "string"}, {"maxLength": 3}]}', "only a list of one schema"),
        ('{"$ref": "#/$defs/none"}', "which is not there"),
        ('{"$ref": "https://example.org/x"}', "only places in the same schema"),
        ('{"type": "integer", "minimum": 3, "maximum": 2}', "allows nothing"),
        ('{"type": "array", "minItems": 3, "maxItems": 2}', "allows nothing"),
        ('{"type": "string", "enum": [1]}', "allows nothing"),
        ('{"type": "string", "maxLength": 100000}', "0 to 1000 is wanted"),
        ("false", "allows nothing"),
        # Nothing at all would follow these.
        ('{"type": "array", "minItems": 1, "maxItems": 0}', "allows nothing: at least 1 items"),
        ('{"type": "array", "items": false, "minItems": 2}', "allows nothing"),
        ('{"prefixItems": [true], "items": false, "minItems": 2}', "another number of items"),
        ('{"type": "string", "minLength": 3, "maxLength": 2}', "allows nothing"),
        ('{"required": ["a"], "additionalProperties": false}', "/properties/a is false"),
        ('{"properties": {"a": {"$ref": "#"}}, "required": ["a"]}', "allows nothing: what begins"),
        ('{"$ref": "#"}', "the schema refers to itself"),
        ('{"anyOf": [{"$ref": "#"}, {"type": "null"}]}', "the schema refers to itself"),
        (
            '{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, '
            '"b": {"$ref": "#/$defs/a"}}}',
            "refers to itself",
        ),
        # What one keyword says of two types holds for both.
        ('{"type": ["integer", "number"], "maximum": 3}', "/maximum cannot be kept to"),
        ('{"type": "number", "minimum": false}', "/minimum of a number can only be 0"),
        # References are not to change their meaning.
        ('{"items": {"$id": "x", "$ref": "#/$defs/a"}}', "/items/$id gives references another"),
        ('{"$ref": "#/$defs/a/$defs/b", "$defs": {"a": {"$id": "x", "$defs": {"b": {}}}}}', "$id"),
        ('{"items": [{"const": 1}], "prefixItems": [{"const": 2}]}', "/items is a list beside"),
        ('{"items": 5, "prefixItems": [{"const": 2}]}', "/items is no schema"),
        ('{"items": 5, "maxItems": 0}', "/items is no schema"),
        ('{"$ref": "#/$defs/%s", "$defs": [1]}' % ("1" * 5000), "which is not there"),
        # Numbers and texts that are none everywhere.
        ('{"enum": [1e999]}', "1e999 is too large"),
        ('{"type": "integer", "enum": [1e999]}', "1e999 is too large"),
        ('{"const": -1e400}', "-1e400 is too large"),
        ('{"enum": [NaN]}', "NaN is no number of JSON"),
        ('{"enum": [-Infinity]}', "-Infinity is no number"),
        ('{"type": "integer", "maximum": 1%s}' % ("0" * 5000), "has 5001 digits, 100 at most"),
        ('{"enum": ["\\ud800"]}', "half of a pair"),
        ('{"properties": {"\\udc00": {}}}', "half of a pair"),
        ('{"title": "\udcff"}', "is not valid UTF-8"),
        ('{"enum": ["%s"]}' % ("a" * 3_000_000), "is too large: 3,000,014 characters"),
        ('{"anyOf": [' * 5000 + "true" + "]}" * 5000, "is nested too deeply"),
        ('{"items": ' * 900 + "true" + "}" * 900, "is nested too deeply"),
        # Values of two alternatives, which oneOf forbids.
        ('{"oneOf": [true, {"type": "string"}]}', "/oneOf may hold more than once"),
        ('{"oneOf": [{"properties": {}}, {"type": "null"}]}', "/oneOf may hold more than once"),
        ('{"oneOf": [{"const": 1}, {"const": 1.0}]}', "/oneOf may hold more than once"),
        (
            '{"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], '
            '"$defs": {"a": {"const": 1}}}',
            "/oneOf may hold more than once",
        ),
        (
            '{"properties": {"next": {"oneOf": [{"$ref": "#"}, {"type": "null"}]}}}',
            "/properties/next/oneOf may hold more than once",
        ),
        (
            '{"properties": {"%s\\n": {"pattern": ""}}}' % ("x" * 500),
            "xxx\\n/pattern cannot be kept",
        ),
        ('{"type": "%s"}' % ("x" * 500), "/type is 'xxx"),
        ("[1]", "is no schema"),
    ],
)
def test_what_cannot_be_kept_to_is_refused_with_its_place(schema: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        schema_to_gbnf(schema)
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 200


def matches(rule: str, number: int) -> bool:
    """Say whether a rule, read as a regular expression, is that of a number."""
    import re

    pattern = rule.removesuffix(" space").replace('"', "").replace(" ", "")
    return re.fullmatch(pattern, str(number)) is not None


def test_integers_are_those_between_the_bounds() -> None:
    bounds = (-1234, -100, -99, -10, -1, 0, 1, 7, 10, 99, 100, 105, 999, 1000, 1234)
    for low in bounds:
        for high in bounds:
            if low <= high:
                rule = integers(low, high)
                near = {low, high, low - 1, high + 1, low * 10, high * 10, 0, *range(-120, 120, 7)}
                assert all(matches(rule, n) == (low <= n <= high) for n in near), (low, high)
    assert matches(integers(5, None), 10**12)
    assert matches(integers(10**17, None), 10**17)
    assert not matches(integers(10**17, None), 10**17 - 1)
    assert matches(integers(None, -(10**20)), -(10**20))
    assert not matches(integers(None, -(10**20)), 1 - 10**20)
    assert not matches(integers(5, None), 4)
    assert matches(integers(None, 5), -(10**12))
