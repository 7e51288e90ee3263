"""Everything that can go wrong in a way a person can mend, with its exit code."""

import copyreg
from typing import Any

_ROOM = 512  # tokens for an answer


class SpecliError(Exception):
    """Carry one line that says what is wrong and, where there is one, what to do about it."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it be pickled, whatever the arguments of a subclass are."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class UsageError(SpecliError):
    """What was asked for makes no sense (exit 2)."""

    exit_code = 2


class TooLongError(UsageError):
    """A prompt does not fit into the context (exit 2)."""

    def __init__(
        self, n_tokens: int, n_ctx: int, n_ctx_train: int, name: str = "the prompt"
    ) -> None:
        """n_ctx_train: the context that the model was trained for, if it is known, else 0."""
        least = n_tokens + _ROOM
        hint = f"--ctx {least} has room for an answer too; or give a shorter prompt"
        if 0 < n_ctx_train < least:
            hint = f"give a shorter prompt: this model was trained for {n_ctx_train} tokens"
        super().__init__(f"{name} has {n_tokens} tokens, the context holds {n_ctx}", hint)
        self.n_tokens = n_tokens
        self.n_ctx = n_ctx


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


class AnswerEnded(SpecliError):
    """An answer was asked for more after another had begun (exit 1)."""


class Interrupted(SpecliError):
    """The user stopped the work (exit 130)."""

    exit_code = 130
