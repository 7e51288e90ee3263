"""Tests of hypotheses in numpy: sums of scores, several tests at once.

Each knows its power: the smallest share of a certain fault that it finds with 90 % probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np

from specli.engine.types import Dist

# How often draws may look odd where nothing is wrong: those that do are drawn again, and that the
# second ones do too happens this seldom.
SUSPICION, ALPHA = 0.01, 0.001
POWER = 0.9
_Z = 1.2816  # the normal distribution's quantile at that power


@dataclass(frozen=True, slots=True)
class Test:
    """A tested hypothesis. detectable: the share of the fault that is found, None where none is."""

    name: str
    p: float
    detectable: float | None

    __test__ = False  # pytest takes it for one of its own


@dataclass(frozen=True, slots=True)
class Score:
    """What a token says: its score less the expected one, whose range is at most 1.

    variance: of the score. shift: by which the fault that is looked for raises it on average.
    """

    deviation: float
    variance: float
    shift: float


def draft_score(p: Dist, q: Dist, token: int) -> Score:
    """Score how much likelier the draft, q, makes a token than the target, p: q / (p + q).

    It looks for guesses that are kept without a look. Among bounded scores this is the best one
    against even mixtures of both, and it loses little against others.
    """
    of_p, of_q = p.at(q.ids).astype(np.float64), q.p.astype(np.float64)
    scores = np.divide(of_q, of_p + of_q, out=np.zeros_like(of_q), where=of_q > 0.0)
    mean = float((of_p * scores).sum())
    p_token, q_token = p.prob(token), q.prob(token)
    score = q_token / (p_token + q_token) if q_token else 0.0
    variance = float((of_p * scores**2).sum()) - mean**2
    return Score(score - mean, max(variance, 0.0), float((of_q * scores).sum()) - mean)


def sureness_score(p: Dist, token: int) -> Score:
    """Score how likely a token was.

    It looks for tokens that are the likeliest instead of drawn, and for other temperatures.
    """
    of_p = p.p.astype(np.float64)
    mean = float((of_p**2).sum())
    variance = float((of_p**3).sum()) - mean**2
    return Score(p.prob(token) - mean, max(variance, 0.0), float(of_p.max()) - mean)


def score_test(name: str, scores: Sequence[Score], alpha: float) -> Test:
    """Test whether scores deviate from what is expected, in either direction.

    The p value is Freedman's bound (1975): true for sums of any length whose terms depend on those
    before them, also where few of them can vary. It asks for about a fifth more than the normal
    approximation would.
    """
    deviation = abs(sum(score.deviation for score in scores))
    variance = sum(score.variance for score in scores)
    shift = sum(score.shift for score in scores)
    p = 1.0
    if deviation:
        p = min(1.0, 2.0 * exp(-(deviation**2) / (2.0 * (variance + deviation / 3.0))))
    most = log(2.0 / alpha)
    needed = most / 3.0 + sqrt(most**2 / 9.0 + 2.0 * most * variance) + _Z * sqrt(variance)
    return Test(name, p, needed / shift if shift > needed else None)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values of several tests for their number (Holm 1979)."""
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted
