"""What is kept of an answer's rounds."""

import json

import numpy as np
import pytest

from specli.chat import Done, Text
from specli.engine.stats import Stats
from specli.engine.types import Dist, Guess, Round
from specli.trace import TracedGuess, TracedRound, Tracer, traced

Q = Dist(np.array([1, 2, 3], np.int32), np.array([0.5, 0.25, 0.25]))


class Words:
    """A vocabulary of four words; 0 is a control token."""

    def tokenize(self, text: str) -> list[int]:
        raise NotImplementedError

    def piece(self, token: int) -> bytes:
        return [b"", b"one", b"\xe2\x82", b"\xac"][token]

    def text(self, token: int) -> bytes:
        return b"<end>" if token == 0 else b"?"


def make(tokens: tuple[int, ...], guesses: tuple[Guess, ...], n: int, *p: float) -> Round:
    return Round(tokens, guesses, n, 0.25, 0.5, 0.125, p)


def states(done: Round) -> list[str]:
    return [guess.state for guess in traced(done).guesses]


def test_numbers_are_taken_and_distributions_are_let_go() -> None:
    guesses = Guess(2, Q, 0.5), Guess(1, None, 0.75, "ngram")
    found = traced(make((2, 3), guesses, 1, 0.125, 0.0))
    assert found == TracedRound(
        (
            TracedGuess(2, "draft", 0.5, 0.25, 0.125, "accepted"),
            TracedGuess(1, "ngram", 0.75, None, 0.0, "rejected"),
        ),
        *(1, 3, 0.25, 0.5, 0.125),
    )
    assert found.tokens == (2, 3)
    assert found.seconds == 0.875


def test_every_guess_has_a_state() -> None:
    guesses = tuple(Guess(token, None, 0.5) for token in (1, 2, 3))
    assert states(make((3,), guesses, 0, 0.0)) == ["rejected", "skipped", "skipped"]
    assert states(make((1, 2, 3, 1), guesses, 3)) == ["accepted"] * 3
    assert states(make((1, 2), guesses, 1)) == ["accepted", "again", "skipped"]
    assert states(make((1,), (), 0)) == []


@pytest.mark.parametrize("n_kept", [1, 2, 3])
def test_a_round_that_a_stop_string_cut(n_kept: int) -> None:
    guesses = tuple(Guess(token, None, 0.5) for token in (1, 2, 3))
    found = traced(make((1, 2, 0), guesses, 2).cut(n_kept))
    assert len(found.tokens) == n_kept
    assert (found.own is None) == (n_kept < 3)
    last = "rejected" if n_kept == 3 else "skipped"
    assert [guess.state for guess in found.guesses][2] == last


def test_an_answer_that_broke_off_is_kept_and_an_empty_one_is_not() -> None:
    tracer = Tracer(Words(), {"target": "t"}, Stats("draft", "why"))
    tracer.begin("first")
    for event in (make((1,), (), 0), Text("one", False), make((2, 0), (Guess(2, None, 1.0),), 1)):
        tracer.add(event)
    tracer.begin("second")
    (answer,) = tracer.trace().answers
    assert (answer.prompt, answer.reason, answer.stats.predicted_n) == ("first", "", 3)
    done = Stats("draft")
    tracer.add(make((3,), (), 0))
    tracer.add(Done("eog", done))
    _, answer = tracer.trace().answers
    assert (answer.reason, answer.stats) == ("eog", done)


def test_the_data_are_plain() -> None:
    tracer = Tracer(Words(), {"target": "t"}, Stats("draft"))
    tracer.begin("p")
    tracer.add(make((1, 0), (Guess(1, Q, 0.5), Guess(2, Q, 0.5)), 1, 1.0, 0.0))
    found = json.loads(json.dumps(tracer.trace().as_dict()))
    assert found["tokens"] == {"0": "<end>", "1": "one", "2": "\\xe2\\x82"}
    assert found["answers"][0]["rounds"][0]["guesses"][1]["state"] == "rejected"
    assert tracer.trace().controls == {0}
