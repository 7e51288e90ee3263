"""From logits to the distribution that tokens are drawn from: llama.cpp's filters, in numpy."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, isfinite, log

import numpy as np
from numpy.typing import NDArray

from specli.engine.types import Dist, Row, certain
from specli.errors import DecodeError
from specli.settings import SamplingSettings

TOP_P_REACH = 10.0  # logits below the best: top-p seldom wants more than what is nearer
_BLOCK = 512  # most tokens whose largest logit is looked at first
DRAFT_NEAR = 8.0  # all that a draft proposes is nearer: the rest is never missed (docs/adr/0008)
# Sums of weights within which float32 tells apart what matters, however logits are shifted.
_LEAST_TOTAL, _MOST_TOTAL = 1e-6, 1e30


def of_draft(settings: SamplingSettings) -> SamplingSettings:
    """Return the settings that a draft draws with: the target's, of likely tokens only.

    Any draft is exact: this one is cheap (docs/adr/0008). At temperature 0 its arg-max is wanted,
    with the probability at temperature 1 as its confidence.
    """
    if settings.temperature == 0:
        settings = replace(settings, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
    min_p = max(settings.min_p, exp(-DRAFT_NEAR * max(1.0, settings.temperature)))
    return replace(settings, min_p=min_p)


def check_finite(best: np.float32) -> np.float32:
    """Return the largest logit. Raises DecodeError where the model computed no numbers."""
    if not isfinite(best):
        raise DecodeError(f"the model computed {best} instead of logits", "is its file damaged?")
    return best


def scale_at(temperature: float) -> float:
    """Return what logits are multiplied by at a temperature; 0 where that is 0: nothing is.

    A tiny one makes all but the best impossible; float32 must not overflow for it.
    """
    return 1.0 / max(temperature, 1e-30) if temperature else 0.0


class LogitSampler:
    """The engine's Sampler: what llama.cpp's chain of the same settings draws from."""

    def __init__(self, settings: SamplingSettings, n_vocab: int) -> None:
        self._settings = settings
        self._ids = np.arange(n_vocab, dtype=np.int32)
        self._floor = np.float32(log(settings.min_p) if settings.min_p else -np.inf)
        self._sorts = settings.top_k > 0 or settings.top_p < 1.0
        self._reach = np.float32(-TOP_P_REACH) if self._sorts else self._floor
        self._scale = scale_at(settings.temperature)

    def warm(self, temperature: float) -> None:
        """Draw with another temperature from now on; neither is 0."""
        self._scale = scale_at(temperature)

    def begin(self, n_prompt: int) -> None:
        """Need to know nothing of where an answer begins."""

    def dist(self, row: Row, history: Sequence[int]) -> Dist:
        """Return the distribution of the token that follows the history. row: (n_vocab,).

        Raises DecodeError where the model computed no numbers.
        """
        row = self.logits(row, history)
        if self._settings.temperature == 0:
            at = row.argmax()
            check_finite(row[at])
            return certain(int(at))
        if self._sorts or self._floor > -np.inf:
            best = check_finite(row.max())
            ids = self._filtered(row, best)
            return Dist(ids, *self._weights(row[ids] - best))
        ids = self._ids[: len(row)]
        with np.errstate(over="ignore"):
            weights, total = self._weights(row)
        if not _LEAST_TOTAL < total < _MOST_TOTAL:  # float32 has no room for them as they are
            weights, total = self._weights(row - check_finite(row.max()))
        return Dist(ids, weights, total)

    def _weights(self, row: Row) -> tuple[Row, float]:
        """Return what logits weigh at the temperature, and the sum."""
        weights = np.exp(row if self._scale == 1.0 else row * self._scale)
        return weights, float(weights.sum())

    def logits(self, row: Row, history: Sequence[int]) -> Row:
        """Return a row after the repeat penalty: what temperature 0 takes the largest of."""
        if self._settings.repeat_penalty == 1.0:
            return row
        first = max(0, len(history) - self._settings.repeat_last_n)
        tokens = np.unique(np.array(history[first:], np.int32))
        tokens = tokens[tokens < len(row)]
        row, logits = row.copy(), row[tokens]
        penalty = self._settings.repeat_penalty
        row[tokens] = np.where(logits > 0, logits / penalty, logits * penalty)
        return row

    def _filtered(self, row: Row, best: np.float32) -> NDArray[np.int32]:
        """Return the tokens that top-k, top-p and min-p let through, increasing.

        Each lets the best n through for an n of its own, so only the best need sorting.
        """
        top_k, top_p = self._settings.top_k, self._settings.top_p
        near = self._near(row, best)
        if 0 < top_k < len(near):
            near = near[np.argpartition(row[near], len(near) - top_k)[len(near) - top_k :]]
        if top_p < 1.0:
            wanted = top_p * np.exp((row[near] if top_k else row) - best).sum()
            weights = np.exp(row[near] - best)
            if weights.sum() < wanted:
                near, weights = np.arange(len(row)), np.exp(row - best)
            order = np.argsort(-weights, kind="stable")
            n = int(np.searchsorted(np.cumsum(weights[order], dtype=np.float64), wanted)) + 1
            near = near[order[:n]]
        if self._sorts:
            near = np.sort(near[row[near] >= best + self._floor])
        return near.astype(np.int32)

    def _near(self, row: Row, best: np.float32) -> NDArray[np.intp]:
        """Return the tokens that are worth a look, increasing: all that top-k wants are there."""
        if not self._settings.top_k:
            return (row >= best + self._reach).nonzero()[0]  # much faster than a mask as an index
        # Where k blocks of tokens have something so large, k tokens have.
        k = self._settings.top_k
        size = min(_BLOCK, max(1, len(row) // (2 * k)))
        peaks = row[: len(row) // size * size].reshape(-1, size).max(axis=1)
        if len(peaks) <= k:
            return np.arange(len(row))
        least: np.float32 = np.partition(peaks, -k)[-k]
        return (row >= least).nonzero()[0]
