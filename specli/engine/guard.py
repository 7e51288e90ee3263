"""Never slower than plain decoding: by what was measured, not by what was believed."""

from math import sqrt

import numpy as np

from specli.engine.types import Round

_TRIAL = 12  # rounds with guesses that tell what such rounds bring
_MEMORY = 1.0 - 1.0 / (4 * _TRIAL)  # what is left of a round after each new one
_PAUSE, _LONGEST_PAUSE = 16, 512  # rounds
_FIRST = 8
_PATIENCE = 32  # before the next
_LEAST_GAIN, _SURE_GAIN = 1.02, 1.3  # times as fast as plain decoding
_SURE_AT_FIRST = 2.0  # T(1) was measured once or twice, and that may have been a busy moment
_DOUBT = 1.0  # standard deviations that a gain has to be too small by


class Guard:
    """Compares what rounds with guesses bring with plain decoding, as both were measured of late.

    Where such rounds bring less, and that is no chance, there are none for a while whatever a plan
    promised, each time for longer. Where they bring little more, a plain round now and then, ever
    more seldom, keeps its price known; the first comes soon, unless they bring very much.
    """

    def __init__(self) -> None:
        # Of rounds with guesses: tokens t, seconds s, and the sums of t t, t s and s s.
        self._sums = np.zeros(5)
        self._n_rounds = 0  # since the last pause
        self._n_since_plain = 0
        self._n_paused = 0
        self._pause = _PAUSE
        self._patience = _FIRST

    def forbids(self, plain_s: float) -> bool:
        """Say whether such guesses pause in the coming round. plain_s: T(1), as believed now."""
        if self._n_paused:
            self._n_paused -= 1
            return True
        tokens, seconds, tt, ts, ss = self._sums
        won_s = tokens * plain_s - _LEAST_GAIN * seconds  # of what makes them worth while
        squared = plain_s**2 * tt - 2 * plain_s * _LEAST_GAIN * ts + _LEAST_GAIN**2 * ss
        if self._n_rounds >= _TRIAL and won_s < -_DOUBT * sqrt(max(squared, 0.0)):
            self._n_paused, self._pause = self._pause - 1, min(2 * self._pause, _LONGEST_PAUSE)
            self._sums = np.zeros(5)
            self._n_rounds = 0
            self._patience = _PATIENCE
            return True
        if self._n_rounds >= 4 * _TRIAL:
            self._pause = _PAUSE
        return False

    def asks(self, plain_s: float) -> bool:
        """Say whether the coming round had better be plain, to tell what that takes."""
        tokens, seconds = self._sums[:2]
        sure_gain = _SURE_AT_FIRST if self._patience == _FIRST else _SURE_GAIN
        is_sure = tokens * plain_s >= sure_gain * seconds
        return not is_sure and self._n_since_plain >= self._patience

    def observe(self, done: Round) -> None:
        """Learn from a finished round: one with such guesses, or a plain one."""
        if not done.n_drafted and not done.draft_s:
            if self._n_since_plain >= self._patience:
                self._patience = min(max(_PATIENCE, 2 * self._patience), _LONGEST_PAUSE)
            self._n_since_plain = 0
            return
        t, s = len(done.tokens), done.draft_s + done.target_s + done.host_s
        self._sums = self._sums * _MEMORY + np.array((t, s, t * t, t * s, s * s))
        self._n_rounds += 1
        self._n_since_plain += 1
