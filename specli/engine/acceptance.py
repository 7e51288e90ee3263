"""How likely the target is to accept a guess of which its drafter is so and so confident."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import exp, log

import numpy as np
from numpy.typing import NDArray

# Bins of confidence: fine towards 1, where most guesses of a good draft lie.
_EDGES = 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.99, 0.998
N_BINS = len(_EDGES) + 1
SUREST = _EDGES[-1]  # confidence from which on a guess is of the last bin
# Rates of acceptance to begin with: of a drafter whose confidence is true, and of a draft model a
# third as large as its target, for arg-max guesses and for drawn ones, as measured over code, chat,
# stories, edits, extraction. A model that is unsure is right more often than it thinks.
TRUE_RATES = (0.1, 0.28, 0.43, 0.58, 0.73, 0.85, 0.93, 0.975, 0.994, 0.999)
GREEDY_RATES = (0.29, 0.46, 0.52, 0.62, 0.77, 0.88, 0.93, 0.99, 0.996, 0.999)
DRAWN_RATES = (0.43, 0.51, 0.57, 0.64, 0.7, 0.8, 0.87, 0.96, 0.993, 0.999)
# How often such confidences come from that draft.
_OUTLOOK = np.array([0.05, 0.07, 0.08, 0.08, 0.07, 0.07, 0.06, 0.06, 0.06, 0.4])
_PRIOR_VOTES = 10.0  # guesses of a bin that its first rate is worth
_OUTLOOK_VOTES = 20.0  # guesses that the first idea is worth of which bin comes
_MEMORY = 0.97  # what is left of a bin's votes after each new one of them
_SEEN_MEMORY = 0.99
_LEAST_STEP = 0.05
_MOST = 8.0  # logits: surer than that is nobody
_MOST_WEIGHT = 1e6  # of a bin, in a file of ours
_KEPT = 0.9  # of what was learned another time: the rest is what everyone begins with


class Acceptance:
    """Probability of acceptance by confidence, learned from every judged guess of one drafter.

    Votes in bins, older ones counting less: texts differ in how often the same confidence is right.
    Each bin begins with a rate, which moves with those of all others by one number, the bias: how
    far off the rates are, in logits, which all guesses tell together.
    """

    def __init__(
        self, rates: Sequence[float], learned: Mapping[str, Sequence[float]] | None = None
    ) -> None:
        """rates: to begin with, of each bin. learned: what `known` returned another time.

        What was learned counts for no more than what one begins with, and fades with each time: a
        draft that was of no use is given another chance some day.

        Raises ValueError, TypeError, KeyError or OverflowError where it is something else.
        """
        self._judged = [0.0] * N_BINS
        self._accepted = [0.0] * N_BINS
        self._n_judged = 0
        self._bias = 0.0
        self._prior = [log(rate / (1.0 - rate)) for rate in rates]  # logits
        self._seen = _OUTLOOK_VOTES * _OUTLOOK
        if learned:
            both = np.array([learned["logits"], learned["outlook"]], np.float64)
            is_sound = both.shape == (2, N_BINS) and bool(np.isfinite(both).all())
            if not is_sound or both[1].min() < 0.0 or not 0.0 < both[1].max() < _MOST_WEIGHT:
                raise ValueError("these are no rates and weights of bins")
            both[0] = np.clip(both[0], -_MOST, _MOST)
            logits, outlook = _KEPT * both + (1.0 - _KEPT) * np.array([self._prior, _OUTLOOK])
            self._prior = logits.tolist()
            self._seen = _OUTLOOK_VOTES * outlook

    def probability(self, confidence: float) -> float:
        """Return how likely a guess is to be accepted."""
        return self._rate(_bin(confidence))

    def outlook(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return how often confidences of each bin come, and their probabilities; (N_BINS,) each.

        The first sums to 1: it is what is known of a guess before it is made.
        """
        rates = np.array([self._rate(at) for at in range(N_BINS)])
        return self._seen / self._seen.sum(), rates

    def expected(self) -> float:
        """Return how likely a guess is to be accepted that was not made yet."""
        weights, rates = self.outlook()
        return float(weights @ rates)

    def observe(self, confidence: float, accepted: bool) -> None:
        """Learn from one guess that the target judged."""
        at = _bin(confidence)
        self._judged[at] = self._judged[at] * _MEMORY + 1.0
        self._accepted[at] = self._accepted[at] * _MEMORY + accepted
        self._n_judged += 1
        step = max(_LEAST_STEP, 1.0 / (2.0 + self._n_judged / 4.0))
        self._bias += step * (accepted - self._believed(at))
        self.see(confidence)

    def see(self, confidence: float) -> None:
        """Learn that a guess was so confident, though nobody judged it."""
        self._seen *= _SEEN_MEMORY
        self._seen[_bin(confidence)] += 1.0

    def known(self) -> dict[str, list[float]]:
        """Return the rates, as logits, and the outlook as plain data."""
        weights, rates = self.outlook()
        rates = np.clip(rates, 0.001, 0.9995)
        return {
            "logits": [round(float(logit), 3) for logit in np.log(rates / (1.0 - rates))],
            "outlook": [round(float(weight), 4) for weight in weights],
        }

    def _rate(self, at: int) -> float:
        prior = self._believed(at)
        return (self._accepted[at] + _PRIOR_VOTES * prior) / (self._judged[at] + _PRIOR_VOTES)

    def _believed(self, at: int) -> float:
        return 1.0 / (1.0 + exp(-self._prior[at] - self._bias))


def _bin(confidence: float) -> int:
    return bisect_right(_EDGES, confidence)
