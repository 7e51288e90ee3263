"""Speculative decoding for local GGUF models.

from specli import load

with load("demo") as model:
    for event in model.stream("Why is the sky blue?"):
        ...
"""

TYPE_CHECKING = False  # typing's own would cost an import, in which Ctrl-C could come
if TYPE_CHECKING:
    from typing import Any

    from specli.api import load
    from specli.chat import Message
    from specli.engine.stats import Stats
    from specli.errors import (
        AnswerEnded,
        CannotRewind,
        DecodeError,
        Interrupted,
        ModelError,
        PairError,
        SpecliError,
        TooLongError,
        UsageError,
    )
    from specli.events import Done, Event, Start, Text
    from specli.speculator import Answer, Conversation, Speculator

__all__ = [
    "Answer",
    "AnswerEnded",
    "CannotRewind",
    "Conversation",
    "DecodeError",
    "Done",
    "Event",
    "Interrupted",
    "Message",
    "ModelError",
    "PairError",
    "SpecliError",
    "Speculator",
    "Start",
    "Stats",
    "Text",
    "TooLongError",
    "UsageError",
    "__version__",
    "load",
]

__version__ = "0.1.0"

# What stands where: it is imported when it is asked for, as `import specli` must cost nothing.
_HOME = {
    "specli.api": ("load",),
    "specli.chat": ("Message",),
    "specli.engine.stats": ("Stats",),
    "specli.errors": (
        *("AnswerEnded", "CannotRewind", "DecodeError", "Interrupted", "ModelError"),
        *("PairError", "SpecliError", "TooLongError", "UsageError"),
    ),
    "specli.events": ("Done", "Event", "Start", "Text"),
    "specli.speculator": ("Answer", "Conversation", "Speculator"),
}


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    for home, names in _HOME.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
