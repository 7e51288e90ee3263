"""Whether a draft's reading of a prompt is paid for by what its guesses then save."""

from math import inf

_ANSWER = 256  # tokens that an answer is expected to have, where nothing says that it has fewer
_SHARE = 0.01  # of plain decoding's time: what reading may cost whatever is believed of the guesses


class Reading:
    """Rations what a draft reads of a prompt before it can guess.

    What costs no more than an answer is expected to gain by it is read at once. A longer prompt is
    read bit by bit, as fast as gains are missed because it has not been read: so an answer that
    ends soon loses no more by reading than it could have won, and one that goes on gets its draft.
    """

    def __init__(self) -> None:
        self._is_first = True
        self._missed_s = 0.0

    def begin(self) -> None:
        """Begin an answer."""
        self._is_first = True

    def pays(
        self, now_s: float, all_s: float, n_left: int | None, plain_s: float, saved: float
    ) -> bool:
        """Say whether to read what takes now_s seconds; then it is paid for.

        all_s: what all takes that is unread: first it is offered as a whole. n_left: tokens that
        the answer may still have. plain_s: T(1). saved: what share of that guesses are expected to
        save.
        """
        gain_s = plain_s * max(saved, _SHARE)  # of a token
        n = inf if n_left is None else n_left
        if self._is_first:
            self._is_first = False
            if all_s <= min(n, _ANSWER) * gain_s:
                return True
        pays_all = all_s <= self._missed_s  # in this answer, and those before
        will_pay = 2 * all_s <= n * gain_s  # as much again is missed until all is read
        if now_s > self._missed_s or not (pays_all or will_pay):
            return False
        self._missed_s -= now_s
        return True

    def miss(self, n_tokens: int, plain_s: float, saved: float) -> None:
        """Learn that so many tokens came without the draft."""
        self._missed_s += n_tokens * plain_s * max(saved, _SHARE)
