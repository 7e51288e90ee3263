"""Never slower than plain decoding: by what was measured, not by what was believed."""

from math import sqrt

import numpy as np

from specli.engine.types import Round

_TRIAL = 12  # rounds with guesses that tell what such rounds bring
_MEMORY = 1.0 - 1.0 / (4 * _TRIAL)  # what is left of a round after each new one
_PAUSE, _LONGEST_PAUSE = 16, 512  # rounds
_FIRST = 8  # rounds with guesses before the first look at a plain one
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

    def __init__(self, *, early: bool = True) -> None:
        """early: whether the first plain round comes soon."""
        # Of rounds with guesses: tokens t, seconds s in T(1), and the sums of t t, t s and s s.
        self._sums = np.zeros(5)
        self._n_rounds = 0  # since the last pause
        self._n_since_plain = 0
        self._n_paused = 0
        self._pause = _PAUSE
        self._patience = _FIRST if early else _PATIENCE

    def forbids(self) -> bool:
        """Say whether such guesses pause in the coming round."""
        if self._n_paused:
            self._n_paused -= 1
            return True
        tokens, seconds, tt, ts, ss = self._sums
        won = tokens - _LEAST_GAIN * seconds  # of what makes them worth while
        squared = tt - 2 * _LEAST_GAIN * ts + _LEAST_GAIN**2 * ss
        if self._n_rounds >= _TRIAL and won < -_DOUBT * sqrt(max(squared, 0.0)):
            self._n_paused, self._pause = self._pause - 1, min(2 * self._pause, _LONGEST_PAUSE)
            self._sums = np.zeros(5)
            self._n_rounds = 0
            self._patience = _PATIENCE
            return True
        if self._n_rounds >= 4 * _TRIAL:
            self._pause = _PAUSE
        return False

    def asks(self) -> bool:
        """Say whether the coming round had better be plain, to tell what that takes."""
        tokens, seconds = self._sums[:2]
        sure_gain = _SURE_AT_FIRST if self._patience == _FIRST else _SURE_GAIN
        return self._n_since_plain >= self._patience and tokens < sure_gain * seconds

    def observe(self, done: Round, before_s: float, plain_s: float) -> None:
        """Learn from a finished round: one with such guesses, or a plain one.

        before_s, plain_s: T(1), as it was believed before it, and now. What a plain round tells of
        it holds for the rounds before as well.
        """
        if not done.n_drafted and not done.draft_s:
            times = before_s / plain_s
            self._sums = self._sums * np.array((1.0, times, 1.0, times, times**2))
            if self._n_since_plain >= self._patience:
                self._patience = min(max(_PATIENCE, 2 * self._patience), _LONGEST_PAUSE)
            self._n_since_plain = 0
            return
        t, s = len(done.tokens), (done.draft_s + done.target_s + done.host_s) / plain_s
        self._sums = self._sums * _MEMORY + np.array((t, s, t * t, t * s, s * s))
        self._n_rounds += 1
        self._n_since_plain += 1


class Guards:
    """The two guards of a session: of rounds in which a draft was asked, of those with finds alone.

    may_draft, may_find: whether they may guess in this round. is_plain: whether nobody may. What a
    draft lost is no reason for n-grams to pause. together: where a target keeps a width guesses now
    and then would change it each time, so there all pause, and a plain round costs more.
    """

    def __init__(self, has_draft: bool, together: bool) -> None:
        self._drafts, self._finds = Guard(early=not together), Guard()
        self._has_draft = has_draft
        self._together = together
        self._plain_s = 0.0
        self.may_draft = self.may_find = True
        self.is_plain = False

    def begin(self, plain_s: float) -> None:
        """Begin a round. plain_s: T(1), as it is believed."""
        self._plain_s = plain_s
        self.may_draft = not self._drafts.forbids()
        self.may_find = not self._finds.forbids()
        if self._together:
            self.may_find = self.may_draft
        is_off = not self.may_find and not (self._has_draft and self.may_draft)
        self.is_plain = is_off or self._drafts.asks() or self._finds.asks()

    def may(self, source: str) -> bool:
        """Say whether one may guess in this round: the draft, or what was found."""
        return not self.is_plain and (self.may_draft if source == "draft" else self.may_find)

    def observe(self, done: Round, plain_s: float) -> None:
        """Learn from a finished round. plain_s: T(1), as it is believed now."""
        is_drafted = bool(done.draft_s) or any(guess.source == "draft" for guess in done.guesses)
        is_plain = not is_drafted and not done.n_drafted
        if is_plain or is_drafted or self._together:
            self._drafts.observe(done, self._plain_s, plain_s)
        if not is_drafted and not self._together:
            self._finds.observe(done, self._plain_s, plain_s)
