"""Grammars over the tokens of real vocabularies, and what is said of those that are none."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from specli.backend.grammar import LlamaGrammar, check_gbnf
from specli.backend.model import LlamaModel, Vocabulary
from specli.errors import UsageError
from tests import tiny_gguf

JSON = 'root ::= "{" pair ("," pair)* "}"\npair ::= "\\"" [a-z é]+ "\\":" [0-9]+\n'


@pytest.fixture(scope="module")
def vocabulary(tiny: Path) -> Iterator[Vocabulary]:
    with LlamaModel(tiny / "target.gguf", vocabulary_only=True) as model:
        yield model.vocabulary


def allowed(grammar: LlamaGrammar, n_vocab: int, history: list[int]) -> set[int] | None:
    found = grammar.allowed(np.arange(n_vocab, dtype=np.int32), history)
    return None if found is None else {*np.flatnonzero(found).tolist()}


def test_ends_only_where_it_is_complete_and_then_nothing_else_follows(
    vocabulary: Vocabulary,
) -> None:
    with LlamaGrammar(vocabulary, 'root ::= "yes" | "y"') as grammar:
        y, e, s = (tiny_gguf.FIRST_BYTE + ord(c) for c in "yes")
        n, eog = vocabulary.n_tokens, {*vocabulary.eog}
        grammar.begin(2)
        assert allowed(grammar, n, [7, 7]) == {y}
        after_y = allowed(grammar, n, [7, 7, y])
        assert after_y
        assert eog < after_y
        es = [i for i in after_y - eog if vocabulary.piece(i) not in (b"e", b"es")]
        assert not es
        assert allowed(grammar, n, [7, 7, y, e, s]) == eog
        assert allowed(grammar, n, [7, 7, s]) is None  # not of the grammar: nothing is said
        assert allowed(grammar, n, [7, 7, y, tiny_gguf.EOS]) is None


def test_control_tokens_are_not_read_as_text(vocabulary: Vocabulary) -> None:
    with LlamaGrammar(vocabulary, "root ::= [^a]*") as grammar:
        may = allowed(grammar, vocabulary.n_tokens, [])
        assert may is not None
        assert tiny_gguf.IM_START not in may
        assert {*vocabulary.eog} < may


def test_walks_back_and_forth_are_the_same_as_beginning_anew(vocabulary: Vocabulary) -> None:
    """Target and draft share the states, in any order; far back none is kept any more."""
    text = '{"' + "ab é" * 60 + '":123,"x":4}'
    tokens = [token for token in vocabulary.tokenize(text) if token != vocabulary.bos]
    chance = random.Random(0)
    with LlamaGrammar(vocabulary, JSON) as shared, LlamaGrammar(vocabulary, JSON) as fresh:
        wrong = tiny_gguf.FIRST_BYTE + ord("}")
        for _ in range(150):
            history = tokens[: chance.randrange(len(tokens) + 1)]
            if chance.random() < 0.3:
                history = [*history, wrong]
            fresh.begin(0)
            n = vocabulary.n_tokens
            assert allowed(shared, n, history) == allowed(fresh, n, history)


def test_few_tokens_and_all_of_them_get_the_same_answer(smollm2: Path) -> None:
    """Of many, first bytes are asked of first."""
    with LlamaModel(smollm2, vocabulary_only=True) as model:
        vocabulary = model.vocabulary
        with LlamaGrammar(vocabulary, JSON) as grammar:
            for text in ("", '{"', '{"x":1', '{"é'):
                history = [t for t in vocabulary.tokenize(text) if t != vocabulary.bos]
                many = allowed(grammar, vocabulary.n_tokens, history)
                assert many
                some = random.Random(0).sample(range(vocabulary.n_tokens), 3000)
                some += [*many][:300]
                for at in range(0, len(some), 150):
                    part = some[at : at + 150]
                    found = grammar.allowed(np.array(part, np.int32), history)
                    assert found is not None
                    assert found.tolist() == [token in many for token in part]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ('root ::= "a', "unexpected end of input"),
        ("root ::= x", "Undefined rule identifier 'x'"),
        ('x ::= "a"', "does not contain a 'root'"),
        ('root ::= root "a" | "b"', "left recursion"),
        ('root ::= "a"\nx ::= "\\q"', "unknown escape at '\\\\q\"' in line 2"),
    ],
)
def test_what_is_no_grammar_is_said_in_one_line(
    text: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        check_gbnf(text)
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert capfd.readouterr().err == ""
