"""What a grammar leaves of a distribution, and of the guesses of a lookup."""

from collections.abc import Sequence
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from specli.engine.sampler import LogitSampler, check_finite, scale_at
from specli.engine.types import Dist, Grammar, Guess, Lookup, Row, certain
from specli.errors import DecodeError
from specli.settings import SamplingSettings

# Logits below the best of all tokens: the grammar is asked of those nearer first. It takes 0.5 to
# 1 us for each: for all of a large vocabulary as long as a decode (docs/adr/0014).
_REACHES = 0.0, 3.0, 6.0, 9.0, 12.0, 16.0, 24.0, inf


class ConstrainedSampler:
    """The engine's Sampler: grammar first, then llama.cpp's filters, then the temperature.

    The grammar is asked from the likeliest token downwards, for as long as one that is further down
    could still be among those that the filters let through.
    """

    def __init__(self, settings: SamplingSettings, n_vocab: int, grammar: Grammar) -> None:
        self._settings = settings
        self._grammar = grammar
        self._free = LogitSampler(settings, n_vocab)
        self._floor = log(settings.min_p) if settings.min_p else -inf
        self._scale = scale_at(settings.temperature)

    def warm(self, temperature: float) -> None:
        """Draw with another temperature from now on; neither is 0."""
        self._scale = scale_at(temperature)
        self._free.warm(temperature)

    def begin(self, n_prompt: int) -> None:
        """Let the grammar begin where the answer does."""
        self._grammar.begin(n_prompt)

    def logits(self, row: Row, history: Sequence[int]) -> Row:
        """Return a row after the repeat penalty; the grammar is not in it."""
        return self._free.logits(row, history)

    def dist(self, row: Row, history: Sequence[int]) -> Dist:
        """Return the distribution of the token that follows the history. row: (n_vocab,).

        A history that the grammar does not know is free of it: a draft may look further after a
        guess that the target is going to reject. Raises DecodeError where no token is allowed.
        """
        if self._grammar.allowed(_NOTHING, history) is None:
            return self._free.dist(row, history)
        row = self.logits(row, history)
        best = check_finite(row.max())
        found, logits = np.empty(0, np.int32), np.empty(0, np.float32)
        above = inf
        for reach in _REACHES:
            low = float(best) - reach
            near = ((row >= low) & (row < above)).nonzero()[0].astype(np.int32)
            near = near[self._allowed(near, history)]
            near = near[np.argsort(-row[near], kind="stable")]
            found = np.concatenate([found, near])
            logits = np.concatenate([logits, row[near]])
            above = low
            if len(found) and (n := self._n_kept(row, logits, low)) is not None:
                return self._over(found[:n], logits[:n])
        raise DecodeError(
            "the grammar allows no token of this model here", "does it name what cannot be written?"
        )

    def _allowed(self, tokens: NDArray[np.int32], history: Sequence[int]) -> NDArray[np.bool]:
        allowed = self._grammar.allowed(tokens, history)
        return np.ones(len(tokens), np.bool) if allowed is None else allowed

    def _n_kept(self, row: Row, logits: NDArray[np.float32], low: float) -> int | None:
        """Return how many of the likeliest the filters keep; None where that is not certain yet.

        logits: of the tokens that are allowed, decreasing, all of them down to `low`.
        """
        if self._settings.temperature == 0:
            return 1
        limit = len(logits) if low == -inf else inf
        if 0 < self._settings.top_k <= len(logits):
            limit = self._settings.top_k
            logits = logits[:limit]
        floor = float(logits[0]) + self._floor
        if low <= floor or logits[-1] < floor:
            limit = min(limit, int((logits >= floor).sum()))
        if self._settings.top_p < 1.0:
            least, most = self._top_p(row, logits, low)
            kept = min(limit, least)
            return int(kept) if kept == min(limit, most) and kept <= len(logits) else None
        return int(limit) if limit <= len(logits) else None

    def _top_p(self, row: Row, logits: NDArray[np.float32], low: float) -> tuple[int, int]:
        """Return how many tokens top-p keeps at least and at most, whatever is still unknown."""
        summed = np.cumsum(np.exp(logits - logits[0]), dtype=np.float64)
        known, rest = float(summed[-1]), 0.0
        k = self._settings.top_k
        is_all = low == -inf or 0 < k <= len(logits)
        if not is_all:
            below = row[row < low]
            rest = float(np.exp(below - logits[0]).sum(dtype=np.float64))
            if k:
                rest = min(rest, (k - len(logits)) * float(np.exp(low - logits[0])))
        wanted = [self._settings.top_p * total for total in (known, known + rest)]
        least, most = np.searchsorted(summed, wanted) + 1
        if is_all:  # rounding may leave the sum a little below itself
            least = most = min(int(least), len(logits))
        return int(least), int(most)

    def _over(self, ids: NDArray[np.int32], logits: NDArray[np.float32]) -> Dist:
        if self._settings.temperature == 0 or len(ids) == 1:
            return certain(int(ids[0]))
        order = np.argsort(ids)
        weights = (logits[order] - logits[0]) * np.float32(self._scale)
        np.exp(weights, out=weights)
        return Dist(ids[order], weights, float(weights.sum()))


_NOTHING = np.empty(0, np.int32)


class ConstrainedLookup:
    """A lookup that offers only what the grammar allows: the target would reject the rest."""

    def __init__(self, lookup: Lookup, grammar: Grammar) -> None:
        self._lookup = lookup
        self._grammar = grammar
        self.name = lookup.name

    def prefill(self, prompt: Sequence[int]) -> None:
        """Take in the prompt."""
        self._lookup.prefill(prompt)

    def guess(self, context: Sequence[int]) -> Guess | None:
        """Return what the lookup guesses, where that may follow."""
        guess = self._lookup.guess(context)
        if guess is None:
            return None
        allowed = self._grammar.allowed(np.array([guess.token], np.int32), context)
        return guess if allowed is not None and allowed[0] else None

    def observe(self, history: Sequence[int], n_new: int) -> None:
        """Learn how the text went on."""
        self._lookup.observe(history, n_new)
