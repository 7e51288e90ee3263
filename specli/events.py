"""The events of an answer, as a program sees them: with --json, and in Python.

It imports nothing that takes time, so that a program can name them at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from specli.engine.stats import Stats
    from specli.engine.types import Reason


@dataclass(frozen=True, slots=True)
class Start:
    """What is about to answer.

    target, draft: the models' names, or "ngram" or "none". method: what guesses: draft, ngram, both
    or none. reason_off: why it is none, where something else was wanted. requantized: whether the
    draft is loaded in fewer bits than its file has.
    """

    target: str
    draft: str
    method: str
    reason_off: str | None
    requantized: bool
    settings: Mapping[str, Any]

    def as_dict(self) -> dict[str, object]:
        """Return it as --json writes it."""
        return {
            "type": "start",
            "target": self.target,
            "draft": self.draft,
            "method": self.method,
            "reason_off": self.reason_off,
            "requantized": self.requantized,
            "settings": dict(self.settings),
        }


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer.

    drafted: it comes from a guess that the target accepted. thought: it belongs to what the model
    thinks before it answers.
    """

    text: str
    drafted: bool
    thought: bool = False

    def as_dict(self) -> dict[str, object]:
        """Return it as --json writes it."""
        said: dict[str, object] = {"type": "text", "text": self.text, "drafted": self.drafted}
        return said | {"thought": True} if self.thought else said


@dataclass(frozen=True, slots=True)
class Done:
    """The end of the answer. reason: eog, length, stop, context or interrupted."""

    reason: "Reason"
    stats: "Stats"

    def as_dict(self) -> dict[str, object]:
        """Return it as --json writes it."""
        return {"type": "done", "reason": self.reason, "stats": self.stats.as_dict()}


Event: TypeAlias = Start | Text | Done
