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
        self._is_bought = False

    def pays(self, seconds: float, n_left: int, plain_s: float, saved: float) -> bool:
        """Say whether to read a prompt, or to go on with that.

        seconds: what all takes that is unread. n_left: tokens that may still be guessed. plain_s:
        T(1). saved: what share of that guesses are expected to save.
        """
        if self._is_first:
            gain_s = min(n_left, self._length) * plain_s * max(saved, _SHARE)
        else:
            gain_s = min(self._missed_s, n_left * plain_s * saved)
        self._is_first = False
        if self._is_bought or seconds <= gain_s:
            self._is_bought = True
        elif seconds <= self._spare_s:
            self._is_bought = True
            self._spare_s -= seconds
        return self._is_bought

    def observe(self, n_tokens: int) -> None:
        """Learn that an answer has so many tokens more."""
        self._n_done += n_tokens

    def miss(self, n_tokens: int, plain_s: float, saved: float) -> None:
        """Learn that they came without the draft because it has not read the prompt."""
        self._missed_s += n_tokens * plain_s * saved
        self._spare_s += n_tokens * plain_s * _SHARE
