"""When to look again whether a draft that has become of no use is of some use now."""

from specli.engine.types import Round

_SHARE = 0.0075  # of the time without guesses: what a look may be expected to lose


class Looks:
    """Rations single guesses of a draft whose guesses do not pay by what is known of it.

    Texts change, and bad luck looks like a bad draft. The less such a guess is expected to lose the
    sooner it is made; after a look in vain the next one waits twice as long. What the draft has to
    read first does not count for much: it grows as fast as the time without guesses does.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin a text, or one that goes on with guesses: what was in vain tells no more."""
        self._off_s = 0.0  # of rounds without guesses, since the last look in vain
        self._wait = 1.0  # times as long as for the first look

    def is_due(self, loss_s: float) -> bool:
        """Say whether to look. loss_s: what that is expected to lose, in seconds."""
        return loss_s * self._wait <= _SHARE * self._off_s

    def observe(self, done: Round, is_look: bool, plain_s: float) -> None:
        """Learn from a finished round. plain_s: T(1)."""
        seconds = done.draft_s + done.target_s + done.host_s
        if not done.draft_s:
            self._off_s += 0.0 if done.n_drafted else seconds
        elif not is_look:
            self.begin()
        elif len(done.tokens) * plain_s < seconds:
            self._off_s = 0.0
            self._wait *= 2.0
