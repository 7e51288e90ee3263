"""Whether a draft's reading of a prompt is paid for by what its guesses then save."""

_ANSWER = 256.0  # tokens that an answer is expected to have before any was seen
_LENGTH_GAIN = 0.3  # of the last answer, in how long the next one is expected to be
_SHARE = 0.01  # of plain decoding's time: what reading may cost whatever is believed of the guesses


class Reading:
    """Rations what a draft reads of a prompt before it can guess.

    What costs no more than the answer is expected to gain by it is read at once. Else it is read
    when as much has been missed by not having read it, as skis are bought when as much was paid to
    rent them: whatever becomes of the answer, no more is lost than reading costs.
    """

    def __init__(self) -> None:
        self._length = _ANSWER  # tokens that an answer is expected to have
        self._spare_s = 0.0  # the share of plain decoding's time that was not used, of all answers
        self._n_done = 0
        self.begin()

    def begin(self) -> None:
        """Begin an answer."""
        if self._n_done:
            self._length += _LENGTH_GAIN * (self._n_done - self._length)
        self._n_done = 0
        self._missed_s = 0.0
        self._is_first = True

    def pays(self, now_s: float, all_s: float, n_left: int, plain_s: float, saved: float) -> bool:
        """Say whether to read what takes now_s seconds; then it is paid for.

        all_s: what all takes that is unread: first it is offered as a whole. n_left: tokens that
        may still be guessed. plain_s: T(1). saved: what share of that guesses are expected
        to save.
        """
        is_first, self._is_first = self._is_first, False
        n = min(n_left, self._length)
        if is_first and all_s <= n * plain_s * max(saved, _SHARE):
            return True
        if all_s <= self._spare_s:
            self._spare_s -= now_s
            return True
        if all_s <= min(self._missed_s, n_left * plain_s * saved):
            self._missed_s -= now_s  # as all_s will be less by it
            return True
        return False

    def observe(self, n_tokens: int) -> None:
        """Learn that an answer has so many tokens more."""
        self._n_done += n_tokens

    def miss(self, n_tokens: int, plain_s: float, saved: float) -> None:
        """Learn that they came without the draft because it has not read the prompt."""
        self._missed_s += n_tokens * plain_s * saved
        self._spare_s += n_tokens * plain_s * _SHARE
