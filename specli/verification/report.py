"""What was compared, and the verdict: plain data."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal, TypeAlias

import numpy as np

from specli.verification.draws import N_TOKENS, Draws
from specli.verification.equality import Comparison
from specli.verification.statistics import Test, holm, score_test
from specli.verification.two_sample import Answer, Sample, two_sample_test

Verdict: TypeAlias = Literal["same", "different", "unfinished", "nothing to compare"]


@dataclass(frozen=True, slots=True)
class Oddity:
    """The token whose frequency is oddest: where to look. answer: it, and those drawn before it."""

    place_id: str
    prompt: Answer
    answer: Answer
    n_seen: int
    n_expected: float


@dataclass(frozen=True, slots=True)
class DrawTest:
    """What one run of draws says.

    alpha: below it an adjusted p value counts. adjusted: the tests' p values, adjusted for their
    number. impossible: answers up to a token that
    the sampler rules out, with the prompts that they continue.
    """

    alpha: float
    n_places: int
    n_plain: int
    n_speculative: int
    n_tokens: int
    n_drafted: int
    n_accepted: int
    tests: tuple[Test, ...]
    adjusted: tuple[float, ...]
    impossible: tuple[tuple[Answer, Answer], ...]
    oddity: Oddity | None

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.impossible and min(self.adjusted) >= self.alpha


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found. draw_tests: a second one where the first found something."""

    comparisons: tuple[Comparison, ...]
    draw_tests: tuple[DrawTest, ...]
    n_prompts: int  # that were to be compared
    interrupted: bool = False

    @property
    def noise(self) -> float:
        """The largest change of a margin, in logits, where several rows are decoded at once."""
        return max((done.noise for done in self.comparisons), default=0.0)

    @property
    def verdict(self) -> Verdict:
        """What it all comes to."""
        failed_draws = len(self.draw_tests) > 1 and not self.draw_tests[-1].passed
        if failed_draws or any(done.failure for done in self.comparisons):
            return "different"
        if self.interrupted:
            return "unfinished"
        n_drafted = sum(done.n_drafted for done in self.comparisons)
        if n_drafted + sum(test.n_drafted for test in self.draw_tests) == 0:
            return "nothing to compare"
        return "same"


def evaluate(all_draws: Sequence[Draws], alpha: float, rng: np.random.Generator) -> DrawTest:
    """Test the draws of one run. alpha: how often they may look odd where nothing is wrong."""
    each = alpha / 3  # the smallest p value of three is held against this
    samples = [Sample(d.plain, d.speculative, d.guessed) for d in all_draws]
    of_draft = [score for draws in all_draws for score in draws.draft_scores]
    sureness = [score for draws in all_draws for score in draws.sureness_scores]
    tests = (
        two_sample_test("plain against speculative", samples, each, rng),
        score_test("leaning to the draft", of_draft, each),
        score_test("sureness", sureness, each),
    )
    return DrawTest(
        alpha=alpha,
        n_places=len(all_draws),
        n_plain=sum(len(draws.plain) for draws in all_draws),
        n_speculative=sum(len(draws.speculative) for draws in all_draws),
        n_tokens=N_TOKENS,
        n_drafted=sum(draws.n_drafted for draws in all_draws),
        n_accepted=sum(draws.n_accepted for draws in all_draws),
        tests=tests,
        adjusted=tuple(holm([test.p for test in tests])),
        impossible=tuple(
            (draws.place.tokens, answer) for draws in all_draws for answer in draws.impossible
        ),
        oddity=_oddest(all_draws),
    )


def _oddest(all_draws: Sequence[Draws]) -> Oddity | None:
    """Return the token that came too often or too seldom by most standard deviations."""
    best, most = None, 0.0
    for draws in all_draws:
        for answer, n_seen in draws.seen.items():
            if not answer:
                continue
            n = draws.seen[answer[:-1]]
            p = draws.expected[answer]
            deviation = abs(n_seen - n * p) / sqrt(1.0 + n * p * (1.0 - p))
            if deviation > most:
                place, most = draws.place, deviation
                best = Oddity(place.id, place.tokens, answer, n_seen, n * p)
    return best
