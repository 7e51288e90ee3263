"""Schemas at random, contradictory ones among them: an answer that follows, or one clear error."""

import json
import random
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specli.backend.grammar import LlamaGrammar
from specli.backend.model import LlamaModel, Vocabulary
from specli.backend.schema_grammar import schema_to_gbnf
from specli.errors import UsageError
from tests import tiny_gguf

ALPHABET = b'{}[]",: \\/abcdefnrtuxylsT-+.019Z2'  # what a text is mostly made of here
NAMES = st.sampled_from(["a", "b", "", "r0", "v0", "specli-ref-0", "root", "$ref", "é"])
COUNT = st.integers(0, 3)
VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, -2, 0.5, "", "a", 'x"y', "\\", 10**30]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=3,
)
REFS = st.sampled_from(["#", "#/$defs/a", "#/$defs/b"])
TYPES = ["string", "number", "integer", "boolean", "null", "object", "array"]


def some(**fields: Any) -> Any:
    """Return a strategy of schemas that have some of these keywords."""
    return st.fixed_dictionaries({}, optional=fields)


def larger(inner: Any) -> Any:
    ways = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        some(
            type=st.just("object"),
            properties=st.dictionaries(NAMES, inner, max_size=3),
            required=st.lists(NAMES, max_size=2),
            additionalProperties=inner,
        ),
        some(type=st.just("array"), items=inner, minItems=COUNT, maxItems=COUNT),
        some(prefixItems=ways, items=inner, minItems=COUNT, maxItems=COUNT),
        ways.map(lambda found: {"anyOf": found}),
        ways.map(lambda found: {"oneOf": found}),
        inner.map(lambda found: {"allOf": [found]}),
    )


LEAVES = st.one_of(
    st.booleans(),
    REFS.map(lambda ref: {"$ref": ref}),
    st.lists(VALUES, max_size=4).map(lambda values: {"enum": values}),
    some(const=VALUES, type=st.sampled_from(TYPES)),
    some(enum=st.lists(VALUES, max_size=3), type=st.lists(st.sampled_from(TYPES), max_size=3)),
    some(type=st.just("string"), minLength=COUNT, maxLength=COUNT),
    some(type=st.just("string"), format=st.sampled_from(["date", "date-time", "uuid"])),
    some(
        type=st.sampled_from(["integer", ["integer", "number"], ["integer", "string"]]),
        minimum=st.integers(-20, 20),
        exclusiveMaximum=st.integers(-20, 120),
        maximum=st.integers(-20, 120),
    ),
    some(type=st.just("number"), minimum=st.sampled_from([0, 0.0, 1])),
    st.lists(st.sampled_from(TYPES), min_size=1).map(lambda types: {"type": types}),
)
SCHEMAS = st.recursive(LEAVES, larger, max_leaves=8)
DOCUMENTS = st.tuples(SCHEMAS, SCHEMAS, SCHEMAS).map(
    lambda found: (
        {**found[0], "$defs": {"a": found[1], "b": found[2]}}
        if isinstance(found[0], dict)
        else found[0]
    )
)


FORMATS = jsonschema.FormatChecker(["date", "uuid"])


@FORMATS.checks("date-time", ValueError)
def is_time(text: object) -> bool:
    return not isinstance(text, str) or bool(datetime.fromisoformat(text))


class Writer:
    """Writes texts that a grammar allows, a byte at a time."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._bytes = np.arange(tiny_gguf.FIRST_BYTE, tiny_gguf.FIRST_BYTE + 256, dtype=np.int32)
        self._end = np.array([min(vocabulary.eog)], np.int32)

    def check(self, schema: Any, seed: int) -> int:
        """Return how many texts were found to follow a schema; -1 where it is refused."""
        try:
            grammar = schema_to_gbnf(json.dumps(schema))
        except UsageError:
            return -1
        validator = jsonschema.Draft202012Validator(schema, format_checker=FORMATS)
        chance = random.Random(seed)
        with LlamaGrammar(self._vocabulary, grammar) as opened:
            texts = [text for _ in range(3) if (text := self._text(opened, chance)) is not None]
        for text in texts:
            validator.validate(json.loads(text))
        return len(texts)

    def _text(self, grammar: LlamaGrammar, chance: random.Random) -> str | None:
        """Return a text that is drawn at random and tends to its end; None where it has none."""
        answer: list[int] = []
        grammar.begin(0)
        for n in range(300):
            may = grammar.allowed(self._bytes, answer)
            may_end = grammar.allowed(self._end, answer)
            assert may is not None
            assert may_end is not None
            ways = np.flatnonzero(may).tolist()
            if may_end[0] and (not ways or n > 60 or chance.random() < 0.4):
                return bytes(token - tiny_gguf.FIRST_BYTE for token in answer).decode()
            assert ways, f"nothing may follow {answer}"
            closing = [byte for byte in ways if byte in b'"}]']
            likely = [byte for byte in ways if byte in ALPHABET]
            few = (closing if n > 30 else []) or (likely if chance.random() < 0.9 else []) or ways
            answer.append(tiny_gguf.FIRST_BYTE + chance.choice(few))
        return None


@pytest.fixture(scope="module")
def writer(tiny: Path) -> Iterator[Writer]:
    with LlamaModel(tiny / "target.gguf", vocabulary_only=True) as model:
        yield Writer(model.vocabulary)


def test_no_text_is_led_into_half_a_surrogate(writer: Writer) -> None:
    assert writer.check({"type": "object", "additionalProperties": {"type": "object"}}, 202) == 3


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(DOCUMENTS, st.integers(0, 1000))
def test_a_schema_is_kept_to_or_refused(writer: Writer, schema: Any, seed: int) -> None:
    writer.check(schema, seed)


@pytest.mark.parametrize("kind", ["date", "date-time", "uuid"])
def test_formats_are_kept_to(writer: Writer, kind: str) -> None:
    assert sum(writer.check({"type": "string", "format": kind}, seed) for seed in range(10)) == 30
