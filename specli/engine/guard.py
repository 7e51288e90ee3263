"""Never slower than plain decoding: by what was measured, not by what was believed."""

from specli.engine.types import Round

_TRIAL = 12  # rounds with guesses that tell what such rounds bring
_PAUSE, _LONGEST_PAUSE = 16, 512  # rounds
_LEAST_GAIN, _SURE_GAIN = 1.02, 1.3  # times as fast as plain decoding


class Guard:
    """Compares what rounds with guesses bring with plain decoding, as both were measured of late.

    Where such rounds bring less, whatever a plan promised, there are none for a while, each time
    for longer. Where they bring little more, a plain round now and then keeps its price known.
    """

    def __init__(self) -> None:
        self._tokens = 0.0
        self._seconds = 0.0
        self._n_rounds = 0  # with guesses, since the last pause
        self._n_since_plain = 0
        self._n_paused = 0
        self._pause = _PAUSE

    def forbids(self, plain_s: float) -> bool:
        """Say whether the coming round has to be plain. plain_s: T(1)."""
        if self._n_paused:
            self._n_paused -= 1
            return True
        if self._n_rounds < _TRIAL:
            return False
        gain = self._tokens / self._seconds * plain_s
        if gain < _LEAST_GAIN:
            self._n_paused, self._pause = self._pause - 1, min(2 * self._pause, _LONGEST_PAUSE)
            self._tokens = self._seconds = 0.0
            self._n_rounds = 0
            return True
        if self._n_rounds >= 4 * _TRIAL:
            self._pause = _PAUSE
        return gain < _SURE_GAIN and self._n_since_plain >= _PAUSE

    def observe(self, done: Round) -> None:
        """Learn from a finished round."""
        if not done.n_drafted and not done.draft_s:
            self._n_since_plain = 0
            return
        keep = 1.0 - 1.0 / (2 * _TRIAL)
        self._tokens = self._tokens * keep + len(done.tokens)
        self._seconds = self._seconds * keep + done.draft_s + done.target_s + done.host_s
        self._n_rounds += 1
        self._n_since_plain += 1
