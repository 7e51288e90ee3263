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
_WHOLE_VOTES = 5.0  # the same of a whole text, in which few were made where they were of no use
_MEMORY = 0.97  # what is left of a bin's votes after each new one of them
_SEEN_MEMORY = 0.99
_LEAST_STEP = 0.05  # of a guess's error, in the bias
_PRIOR_TEXTS = 2.0  # that first ideas are worth
_MOST_TEXTS = 12.0  # that count
_HALF_TEXT = 3.0  # guesses of a text that make it count for half
_MOST = 8.0  # logits: surer than that is nobody
_MOST_WEIGHT = 1e6  # of a bin, in a file of ours
KEPT = 0.85  # of the texts of which it was learned, from one session to the next


class Acceptance:
    """Probability of acceptance by confidence, learned from every judged guess of one drafter.

    Texts differ in how often the same confidence is right, so older guesses count less. What a text
    begins with is the mean of first ideas and of the texts before it, each as a whole: the end of
    one says little of the next.
    """

    def __init__(
        self,
        rates: Sequence[float],
        learned: Mapping[str, Sequence[float]] | None = None,
        *,
        kept: float = KEPT,
        lasts: bool = True,
    ) -> None:
        """rates: to begin with, of each bin. learned: what `known` returned another time.

        kept: how much of that counts. It fades with each session: a draft that was of no use is
        given another chance some day. lasts: whether what is learned of some texts says anything of
        others. Raises ValueError, TypeError, KeyError or OverflowError where it is something else.
        """
        self._lasts = lasts
        self._first = np.array([[_logit(rate) for rate in rates], _OUTLOOK])
        # The mean of texts, each as a whole, and how many told of rates and of the outlook.
        self._mean, self._n_texts = self._first, np.zeros(2)
        if learned:
            held = np.array([learned["logits"], learned["outlook"]], np.float64)
            n_texts = np.array(learned["texts"], np.float64)
            is_sound = held.shape == (2, N_BINS) and bool(np.isfinite(held).all())
            if not is_sound or held[1].min() < 0.0 or not 0.0 < held[1].max() < _MOST_WEIGHT:
                raise ValueError("these are no rates and weights of bins")
            if n_texts.shape != (2,) or not ((n_texts >= 0.0) & (n_texts <= _MOST_TEXTS)).all():
                raise ValueError("these are no numbers of texts")
            self._mean = np.array([np.clip(held[0], -_MOST, _MOST), held[1] / held[1].sum()])
            self._n_texts = kept * n_texts
        self._start()

    def begin(self) -> None:
        """Begin a text."""
        if self._lasts:
            self._n_texts, self._mean = self._learned()
        self._start()

    def probability(self, confidence: float) -> float:
        """Return how likely a guess is to be accepted."""
        return self._lately.rate(_bin(confidence))

    def outlook(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return how often confidences of each bin come, and their probabilities; (N_BINS,) each.

        The first sums to 1: it is what is known of a guess before it is made.
        """
        return self._seen / self._seen.sum(), self._lately.rates()

    def expected(self) -> float:
        """Return how likely a guess is to be accepted that was not made yet."""
        weights, rates = self.outlook()
        return float(weights @ rates)

    def observe(self, confidence: float, accepted: bool) -> None:
        """Learn from one guess that the target judged."""
        for votes in (self._lately, self._whole):
            votes.observe(_bin(confidence), accepted)
        self.see(confidence)

    def see(self, confidence: float) -> None:
        """Learn that a guess was so confident, though nobody judged it."""
        at = _bin(confidence)
        self._seen *= _SEEN_MEMORY
        for seen in (self._seen, self._seen_whole):
            seen[at] += 1.0

    def known(self) -> dict[str, list[float]]:
        """Return the mean of all texts, rates as logits, and how many told of them; plain data."""
        n_texts, (logits, outlook) = self._learned()
        return {
            "logits": [round(float(logit), 3) for logit in logits],
            "outlook": [round(float(weight), 4) for weight in outlook],
            "texts": [round(float(n), 2) for n in n_texts],
        }

    def _start(self) -> None:
        n, n_first = self._n_texts[:, None], _PRIOR_TEXTS
        logits, outlook = (n * self._mean + n_first * self._first) / (n + n_first)
        self._lately = _Votes(logits, _MEMORY, _LEAST_STEP)
        self._seen = _OUTLOOK_VOTES * outlook / outlook.sum()
        self._whole = _Votes(logits, 1.0, 0.0)
        self._seen_whole = _WHOLE_VOTES * outlook / outlook.sum()

    def _learned(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return how many texts there were, with this one, and their mean."""
        logits = [_logit(rate) for rate in self._whole.rates()]
        n_votes = self._seen_whole.sum()
        whole = np.array([np.clip(logits, -_MOST, _MOST), self._seen_whole / n_votes])
        n_guesses = np.array([self._whole.n_judged, n_votes - _WHOLE_VOTES])
        share = n_guesses / (n_guesses + _HALF_TEXT)  # of a text
        n_texts = self._n_texts + share
        step = np.divide(share, n_texts, out=np.zeros(2), where=n_texts > 0.0)
        mean = self._mean + (whole - self._mean) * step[:, None]
        return np.minimum(n_texts, _MOST_TEXTS), mean


class _Votes:
    """Rates of acceptance by bin: votes on top of first ideas.

    These move by one number, the bias: how far off they are, in logits, which the guesses of all
    bins tell together.
    """

    def __init__(self, prior: Sequence[float], memory: float, least_step: float) -> None:
        """prior: logits. memory: what is left of a bin's votes after each new one of them.

        least_step: of a guess's error, in the bias, once many were judged.
        """
        self._prior = [float(logit) for logit in prior]
        self._memory, self._least_step = memory, least_step
        self._judged = [0.0] * N_BINS
        self._accepted = [0.0] * N_BINS
        self.n_judged = 0
        self._bias = 0.0

    def rate(self, at: int) -> float:
        """Return how likely a guess of a bin is to be accepted."""
        prior = _PRIOR_VOTES * self._believed(at)
        return (self._accepted[at] + prior) / (self._judged[at] + _PRIOR_VOTES)

    def rates(self) -> NDArray[np.float64]:
        """Return the rate of each bin, (N_BINS,)."""
        return np.array([self.rate(at) for at in range(N_BINS)])

    def observe(self, at: int, accepted: bool) -> None:
        """Learn from a guess of a bin."""
        self._judged[at] = self._judged[at] * self._memory + 1.0
        self._accepted[at] = self._accepted[at] * self._memory + accepted
        self.n_judged += 1
        step = max(self._least_step, 1.0 / (2.0 + self.n_judged / 4.0))
        bias = self._bias + step * (accepted - self._believed(at))
        self._bias = min(max(bias, -_MOST), _MOST)

    def _believed(self, at: int) -> float:
        return 1.0 / (1.0 + exp(-self._prior[at] - self._bias))


def _logit(rate: float) -> float:
    return log(rate / (1.0 - rate))


def _bin(confidence: float) -> int:
    return bisect_right(_EDGES, confidence)
