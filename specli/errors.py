"""Everything that can go wrong in a way a person can mend, with its exit code."""


class SpecliError(Exception):
    """Carry one line that says what is wrong and, where there is one, what to do about it."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(SpecliError):
    """What was asked for makes no sense (exit 2)."""

    exit_code = 2


class ModelError(SpecliError):
    """A model cannot be found, fetched or loaded (exit 3)."""

    exit_code = 3


class PairError(SpecliError):
    """This target and this draft cannot work together (exit 4)."""

    exit_code = 4


class DecodeError(SpecliError):
    """A model failed while it decoded (exit 1)."""


class CannotRewind(DecodeError):
    """The memory of this model cannot drop the end of a sequence."""


class Interrupted(SpecliError):
    """The user stopped the work (exit 130)."""

    exit_code = 130
