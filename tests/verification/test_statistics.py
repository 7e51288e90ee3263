"""Each test of verification has the level and the power that it says."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from specli.engine.types import Dist, certain
from specli.verification.statistics import (
    Score,
    draft_score,
    holm,
    score_test,
    sureness_score,
)
from specli.verification.two_sample import Sample, _chi_square, two_sample_test

P = Dist(np.array([0, 1, 2, 5], np.int32), np.array([0.5, 0.3, 0.15, 0.05]))
Q = Dist(np.array([1, 2, 4], np.int32), np.array([0.2, 0.7, 0.1]))


@pytest.mark.parametrize("q", [Q, P, certain(1), certain(3)])
def test_scores_know_their_moments(q: Dist) -> None:
    """Over all tokens: no deviation on average, the variance, and the average under the fault."""
    for score, fault in ((lambda t: draft_score(P, q, t), q), (sureness, certain(0))):
        deviations = {t: score(t).deviation for t in range(6)}
        one = score(0)
        mean = sum(P.prob(t) * d for t, d in deviations.items())
        assert mean == pytest.approx(0.0, abs=1e-12)
        square = sum(P.prob(t) * d**2 for t, d in deviations.items())
        assert one.variance == pytest.approx(square, abs=1e-12)
        shift = sum(fault.prob(t) * d for t, d in deviations.items())
        assert one.shift == pytest.approx(shift, abs=1e-12)
        assert max(deviations.values()) - min(deviations.values()) <= 1.0


def sureness(token: int) -> Score:
    return sureness_score(P, token)


def drawn(n: int, share: float, rng: np.random.Generator) -> list[Score]:
    """Draw from P, but for a share of draws from Q."""
    sources = rng.random(n) < share
    return [draft_score(P, Q, (Q if wrong else P).draw(rng)) for wrong in sources]


def test_the_score_test_finds_what_it_promises_and_nothing_else() -> None:
    rng = np.random.default_rng(1)
    promised = score_test("", drawn(200, 0.0, rng), 0.01).detectable
    assert promised is not None
    assert 0.1 < promised < 0.6
    found = [score_test("", drawn(200, promised, rng), 0.01).p < 0.01 for _ in range(40)]
    assert np.mean(found) > 0.75
    none = [score_test("", drawn(200, 0.0, rng), 0.01).p for _ in range(40)]
    assert min(none) > 0.001


def test_scores_that_cannot_vary_promise_nothing() -> None:
    alone = [draft_score(certain(3), certain(3), 3)] * 1000
    test = score_test("", alone, 0.01)
    assert (test.p, test.detectable) == (1.0, None)


def test_holm_adjusts_the_smallest_most() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]


def sample(n: int, share: float, rng: np.random.Generator) -> Sample:
    """Answers of two tokens; a share of the speculative ones is what the draft guesses."""

    def answer() -> tuple[int, ...]:
        return P.draw(rng), P.draw(rng)

    guessed = [(Q.draw(rng), Q.draw(rng)) for _ in range(n)]
    speculative = [guess if rng.random() < share else answer() for guess in guessed]
    return Sample([answer() for _ in range(n)], speculative, guessed)


def test_the_two_sample_test_finds_what_it_promises_and_nothing_else() -> None:
    rng = np.random.default_rng(2)
    promised = two_sample_test("", [sample(100, 0.0, rng)], 0.05, rng).detectable
    assert promised is not None
    assert 0.1 < promised < 0.9
    p = [two_sample_test("", [sample(100, promised, rng)], 0.05, rng).p for _ in range(5)]
    assert sum(one < 0.05 for one in p) >= 3
    p = [two_sample_test("", [sample(100, 0.0, rng)], 0.05, rng).p for _ in range(5)]
    assert min(p) > 0.001
    assert max(p) > 0.2


def test_the_statistic_is_the_chi_square_of_a_table() -> None:
    table = np.array([[12, 30, 8], [25, 20, 15]])
    member = np.repeat(np.tile(np.eye(3, dtype=np.float32), (2, 1)), table.ravel(), axis=0)
    is_plain = np.arange(table.sum()) < table[0].sum()
    ours = _chi_square(is_plain[None], member, np.zeros(3, np.intp))
    assert ours[0] == pytest.approx(chi2_contingency(table, correction=False).statistic)


@pytest.mark.parametrize("answers", [[], [(1,)] * 50, [(1, 2), (3,)]])
def test_samples_that_say_nothing(answers: list[tuple[int, ...]]) -> None:
    test = two_sample_test("", [Sample(answers, answers, [])], 0.05, np.random.default_rng(0))
    assert (test.p, test.detectable) == (1.0, None)
