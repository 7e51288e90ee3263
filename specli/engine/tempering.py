"""How warm a draft draws, so that its target agrees with it most often."""

from math import sqrt

import numpy as np

from specli.engine.types import Dist

TEMPERATURES = 0.7, 0.8, 0.9, 1.0, 1.1  # of the target's
_FIRST = TEMPERATURES.index(0.9)  # the best for drafts a third as large as their targets (ADR 8)
_MEMORY = 0.999  # what is left of a guess after each new one
_DOUBT = 2.5  # standard deviations by which another temperature has to be better


class Tempering:
    """Chooses a draft's temperature by what the next warmer and colder one would have brought.

    A guess x is accepted with the probability sum min(p, q) of its position. For a q' over the same
    tokens min(q'(x), p(x)) / q(x) has the mean sum min(p, q'), x being drawn from q (importance
    sampling): what was drawn at one temperature tells of the others. Any q leaves the target's
    distribution as it is: this is about speed alone.
    """

    def __init__(self, factor: float | None = None) -> None:
        """factor: the temperature to begin with; where it is none of TEMPERATURES, the usual."""
        self._at = TEMPERATURES.index(factor) if factor in TEMPERATURES else _FIRST
        self._forget()

    @property
    def factor(self) -> float:
        """The temperature to draw with, of the target's."""
        return TEMPERATURES[self._at]

    def observe(self, q: Dist, token: int, p: float) -> None:
        """Learn from a guess. q: what it was drawn from. p: the target's probability of it."""
        drawn = q.prob(token)
        own = min(drawn, p) / drawn
        for other in self._won:
            weights = np.power(q.weights, self.factor / TEMPERATURES[other])
            share = float(weights[q.ids.searchsorted(token)]) / float(weights.sum())
            won = min(share, p) / drawn - own
            self._won[other] = self._won[other] * _MEMORY + won
            self._squared[other] = self._squared[other] * _MEMORY**2 + won**2
        best = max(self._won, key=self._surely_won)
        if self._surely_won(best) > 0.0:
            self._at = best
            self._forget()

    def _surely_won(self, other: int) -> float:
        return self._won[other] - _DOUBT * sqrt(self._squared[other])

    def _forget(self) -> None:
        others = {self._at - 1, self._at + 1} & set(range(len(TEMPERATURES)))
        self._won = dict.fromkeys(others, 0.0)  # guesses, by the number of the temperature
        self._squared = dict.fromkeys(others, 0.0)
