"""Speculative decoding for local GGUF models.

from specli import load

with load("demo") as model:
    for event in model.stream("Why is the sky blue?"):
        ...
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specli.api import load as load
    from specli.chat import Message as Message
    from specli.engine.stats import Stats as Stats
    from specli.errors import CannotRewind as CannotRewind
    from specli.errors import DecodeError as DecodeError
    from specli.errors import Interrupted as Interrupted
    from specli.errors import ModelError as ModelError
    from specli.errors import PairError as PairError
    from specli.errors import SpecliError as SpecliError
    from specli.errors import TooLongError as TooLongError
    from specli.errors import UsageError as UsageError
    from specli.events import Done as Done
    from specli.events import Event as Event
    from specli.events import Start as Start
    from specli.events import Text as Text
    from specli.speculator import Answer as Answer
    from specli.speculator import Conversation as Conversation
    from specli.speculator import Speculator as Speculator

__version__ = "0.1.0"

# What stands where: it is imported when it is asked for, as `import specli` must cost nothing.
_HOME = {
    "specli.api": ("load",),
    "specli.chat": ("Message",),
    "specli.engine.stats": ("Stats",),
    "specli.errors": (
        *("CannotRewind", "DecodeError", "Interrupted", "ModelError", "PairError"),
        *("SpecliError", "TooLongError", "UsageError"),
    ),
    "specli.events": ("Done", "Event", "Start", "Text"),
    "specli.speculator": ("Answer", "Conversation", "Speculator"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for home, names in _HOME.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for names in _HOME.values() for name in names)})
