"""Draws at a temperature: a right verifier passes, wrong ones do not."""

from dataclasses import replace

import numpy as np
import pytest

from specli.engine import decode
from specli.verification.draws import Draws, Place, _judge, draw, find_places
from specli.verification.equality import Comparison
from specli.verification.plain import target_of
from specli.verification.report import DrawTest, Report, evaluate
from specli.verification.statistics import ALPHA
from tests.fakes import FakeModel, FakeSampler, make_decoder
from tests.faults import FAULTS, Faulty

PROMPT = (1, 2, 3, 4, 1, 2, 5, 3, 1, 2)
FILTERED = FakeSampler(0.8, top_k=10, top_p=0.95)


def drawn(
    draft: str, seed: int, n: int = 60, sampler: FakeSampler = FILTERED
) -> tuple[list[Draws], DrawTest]:
    """Draw at the best places of a fake model's answer."""
    target, guesser = FakeModel(seed, 50), FakeModel(seed, 50, noise=0.7)
    decoder = make_decoder(target, guesser if draft == "model" else draft, 4, sampler, seed)
    plain = target_of(decoder)
    rng = np.random.default_rng(seed)
    answer = tuple(token for token, _ in plain.decode(PROMPT, 32, rng))
    places = find_places(decoder, plain, [("a", PROMPT, answer), ("b", (3, 1), answer)], 3)
    found = [Draws(place) for place in places]
    for draws in found:
        draw(draws, decoder, plain, n, rng, noise=0.0)
    return found, evaluate(found, ALPHA, rng)


@pytest.mark.parametrize(("draft", "sampler"), [("model", FakeSampler(1.0)), ("ngram", FILTERED)])
def test_the_right_verifier_passes(draft: str, sampler: FakeSampler) -> None:
    _, test = drawn(draft, 1, sampler=sampler)
    assert test.passed
    assert (test.n_places, test.n_plain, test.n_speculative) == (3, 180, 180)
    assert test.n_drafted > test.n_accepted > 0
    leaning = test.tests[1].detectable
    assert leaning
    assert leaning < 0.4


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("draft", ["model", "ngram"])
def test_broken_verifiers_do_not(draft: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "verify", Faulty(fault))
    _, test = drawn(draft, 1)
    assert not test.passed
    assert test.adjusted[1] < ALPHA
    assert test.oddity


def test_places_are_where_target_and_draft_agree_half() -> None:
    decoder = make_decoder(FakeModel(1, 9), "ngram", 4, FakeSampler(1.0))
    target = target_of(decoder)
    answer = tuple(token for token, _ in target.decode(PROMPT, 30, np.random.default_rng(0)))
    texts = [("a", PROMPT, answer), ("b", (8,), (1, 2, 3))]
    best, other, *rest = find_places(decoder, target, texts, 5)
    assert {best.id, other.id} == {"a", "b"}
    assert len(rest) == 3
    lookup = decoder.lookup
    assert lookup
    place = best if best.id == "a" else other
    lookup.prefill(list(place.tokens))
    guess = lookup.guess(list(place.tokens))
    assert guess
    p = FakeSampler(1.0).dist(FakeModel(1, 9).row(place.tokens), []).prob(guess.token)
    assert 0.05 < p < 0.9


def test_a_token_that_the_filters_rule_out_is_named_unless_rounding_may_let_it_in() -> None:
    target = FakeModel(1, 9)
    row = np.array([3.0, 2.0, 1.0, 0.9, 0, 0, 0, 0, 0], np.float32)
    target.row = lambda history: row  # type: ignore[method-assign]
    decoder = make_decoder(target, "ngram", 4, FakeSampler(1.0, top_k=3))
    draws = Draws(Place("a", PROMPT))
    # The last one that top-k lets through is 0.1 better than the one that it does not.
    for noise, n_impossible in ((0.06, 0), (0.04, 1)):
        _judge(draws, target_of(decoder), (0, 3), [None, None], noise)
        assert len(draws.impossible) == n_impossible
    assert draws.impossible == [(0, 3)]


def test_something_found_once_is_no_verdict() -> None:
    good = DrawTest(ALPHA, 1, 9, 9, 5, 9, 5, (), (0.5, 1.0, 1.0), (), None)
    bad = replace(good, adjusted=(1e-9, 1.0, 1.0))
    same = Comparison("a", PROMPT, (1,), 1, 3, 2, 0.0, 4, ())
    assert Report((same,), (bad, good), 1).verdict == "same"
    assert Report((same,), (bad, bad), 1).verdict == "different"
    assert Report((same,), (bad,), 1, interrupted=True).verdict == "unfinished"
    assert Report((), (), 1).verdict == "nothing to compare"
