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
_MEMORY, _LASTING = 0.97, 0.996  # what is left of a bin's votes after each new one of them
_SEEN_MEMORY, _SEEN_LASTING = 0.99, 0.999
_LEAST_STEP, _LASTING_STEP = 0.05, 0.005  # of a guess's error, in the bias
_MOST = 8.0  # logits: surer than that is nobody
_MOST_WEIGHT = 1e6  # of a bin, in a file of ours
_KEPT = 0.9  # of what was learned another time


class Acceptance:
    """Probability of acceptance by confidence, learned from every judged guess of one drafter.

    Texts differ in how often the same confidence is right, so older guesses count less. What other
    sessions begin with is learned apart, for longer: the end of a text says little of the next one.
    """

    def __init__(
        self, rates: Sequence[float], learned: Mapping[str, Sequence[float]] | None = None
    ) -> None:
        """rates: to begin with, of each bin. learned: what `known` returned another time.

        What was learned fades with each time: a draft that was of no use is given another chance
        some day. Raises ValueError, TypeError, KeyError or OverflowError where it is something
        else.
        """
        self._lasting = _Votes(rates, _LASTING, _LASTING_STEP)
        self._seen_lasting = _OUTLOOK_VOTES * _OUTLOOK
        if learned:
            self._seen_lasting = self._lasting.recall(learned)
        known = [self._lasting.rate(at) for at in range(N_BINS)]
        self._lately = _Votes(known, _MEMORY, _LEAST_STEP)
        self._seen = _OUTLOOK_VOTES * self._seen_lasting / self._seen_lasting.sum()

    def probability(self, confidence: float) -> float:
        """Return how likely a guess is to be accepted."""
        return self._lately.rate(_bin(confidence))

    def outlook(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return how often confidences of each bin come, and their probabilities; (N_BINS,) each.

        The first sums to 1: it is what is known of a guess before it is made.
        """
        rates = np.array([self._lately.rate(at) for at in range(N_BINS)])
        return self._seen / self._seen.sum(), rates

    def expected(self) -> float:
        """Return how likely a guess is to be accepted that was not made yet."""
        weights, rates = self.outlook()
        return float(weights @ rates)

    def observe(self, confidence: float, accepted: bool) -> None:
        """Learn from one guess that the target judged."""
        for votes in (self._lately, self._lasting):
            votes.observe(_bin(confidence), accepted)
        self.see(confidence)

    def see(self, confidence: float) -> None:
        """Learn that a guess was so confident, though nobody judged it."""
        at = _bin(confidence)
        self._seen *= _SEEN_MEMORY
        self._seen[at] += 1.0
        self._seen_lasting *= _SEEN_LASTING
        self._seen_lasting[at] += 1.0

    def known(self) -> dict[str, list[float]]:
        """Return what other sessions may begin with, as plain data."""
        seen = [round(float(weight), 3) for weight in self._seen_lasting]
        return {**self._lasting.known(), "seen": seen}


class _Votes:
    """Rates of acceptance by bin: votes on top of first ideas.

    These move by one number, the bias: how far off they are, in logits, which the guesses of all
    bins tell together.
    """

    def __init__(self, rates: Sequence[float], memory: float, least_step: float) -> None:
        """memory: what is left of a bin's votes after each new one of them. least_step: of bias."""
        self._prior = [log(rate / (1.0 - rate)) for rate in rates]  # logits
        self._memory, self._least_step = memory, least_step
        self._judged = [0.0] * N_BINS
        self._accepted = [0.0] * N_BINS
        self._n_judged = 0.0
        self._bias = 0.0

    def rate(self, at: int) -> float:
        """Return how likely a guess of a bin is to be accepted."""
        prior = _PRIOR_VOTES * self._believed(at)
        return (self._accepted[at] + prior) / (self._judged[at] + _PRIOR_VOTES)

    def observe(self, at: int, accepted: bool) -> None:
        """Learn from a guess of a bin."""
        self._judged[at] = self._judged[at] * self._memory + 1.0
        self._accepted[at] = self._accepted[at] * self._memory + accepted
        self._n_judged += 1.0
        step = max(self._least_step, 1.0 / (2.0 + self._n_judged / 4.0))
        bias = self._bias + step * (accepted - self._believed(at))
        self._bias = min(max(bias, -_MOST), _MOST)

    def known(self) -> dict[str, list[float]]:
        """Return it as plain data."""
        columns = {"judged": self._judged, "accepted": self._accepted, "bias": [self._bias]}
        return {name: [round(value, 3) for value in column] for name, column in columns.items()}

    def recall(self, learned: Mapping[str, Sequence[float]]) -> NDArray[np.float64]:
        """Take over what was known, and `seen`, which is returned; all of it fades. Raises."""
        columns = [learned[name] for name in ("judged", "accepted", "seen")]
        held, (bias,) = np.array(columns, np.float64), learned["bias"]
        is_sound = held.shape == (3, N_BINS) and bool(np.isfinite(held).all())
        if not is_sound or held.min() < 0.0 or held.max() >= _MOST_WEIGHT:
            raise ValueError("these are no votes of bins")
        judged, accepted, seen = _KEPT * held
        if (accepted > judged).any() or not seen.any() or not -_MOST <= bias <= _MOST:
            raise ValueError("these are no votes of bins")
        self._judged, self._accepted = judged.tolist(), accepted.tolist()
        self._n_judged = float(judged.sum())
        self._bias = _KEPT * bias
        found: NDArray[np.float64] = seen + (1.0 - _KEPT) * _OUTLOOK_VOTES * _OUTLOOK
        return found

    def _believed(self, at: int) -> float:
        return 1.0 / (1.0 + exp(-self._prior[at] - self._bias))


def _bin(confidence: float) -> int:
    return bisect_right(_EDGES, confidence)
