"""Never slower than plain decoding: by what was measured, not by what was believed."""

from math import sqrt

from specli.engine.types import Round

_TRIAL = 12  # rounds with guesses that tell what such rounds bring
_MEMORY = 1.0 - 1.0 / (4 * _TRIAL)  # what is left of a round after each new one
_PAUSE, _LONGEST_PAUSE = 16, 512  # rounds
_PATIENCE = 32  # rounds with guesses before the first look at a plain one
_LEAST_GAIN, _SURE_GAIN = 1.02, 1.3  # times as fast as plain decoding
_DOUBT = 1.0  # standard deviations that a gain has to be too small by


class Guard:
    """Compares what rounds with guesses bring with plain decoding, as both were measured of late.

    Where such rounds bring less, and that is no chance, there are none for a while whatever a plan
    promised, each time for longer. Where they bring little more, a plain round now and then, ever
    more seldom, keeps its price known.
    """

    def __init__(self) -> None:
        self._won_s = 0.0  # time that rounds with guesses saved, of what makes them worth while
        self._squared = 0.0  # the sum of the squares of that
        self._seconds = 0.0
        self._n_rounds = 0  # with guesses, since the last pause
        self._n_since_plain = 0
        self._n_paused = 0
        self._pause = _PAUSE
        self._patience = _PATIENCE

    def forbids(self) -> bool:
        """Say whether the coming round has to be plain."""
        if self._n_paused:
            self._n_paused -= 1
            return True
        if self._n_rounds < _TRIAL:
            return False
        if self._won_s < -_DOUBT * sqrt(self._squared):
            self._n_paused, self._pause = self._pause - 1, min(2 * self._pause, _LONGEST_PAUSE)
            self._won_s = self._squared = self._seconds = 0.0
            self._n_rounds = 0
            self._patience = _PATIENCE
            return True
        if self._n_rounds >= 4 * _TRIAL:
            self._pause = _PAUSE
        is_sure = self._won_s > (_SURE_GAIN - _LEAST_GAIN) * self._seconds
        return not is_sure and self._n_since_plain >= self._patience

    def observe(self, done: Round, plain_s: float) -> None:
        """Learn from a finished round. plain_s: T(1)."""
        if not done.n_drafted and not done.draft_s:
            if self._n_since_plain >= self._patience:
                self._patience = min(2 * self._patience, _LONGEST_PAUSE)
            self._n_since_plain = 0
            return
        seconds = done.draft_s + done.target_s + done.host_s
        won_s = len(done.tokens) * plain_s - _LEAST_GAIN * seconds
        self._won_s = self._won_s * _MEMORY + won_s
        self._squared = self._squared * _MEMORY + won_s**2
        self._seconds = self._seconds * _MEMORY + seconds
        self._n_rounds += 1
        self._n_since_plain += 1
