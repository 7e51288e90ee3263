"""Answers of several contestants side by side: what slows the machine slows all alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from specli.assemble import Session
from specli.bench.records import Rounds, columns
from specli.chat import AnswerEvent, Done
from specli.engine.types import Round
from specli.errors import Interrupted

_TURN = 8  # tokens: a third of a second and more, so that what a change of turns costs is little


@dataclass(slots=True)
class Answering:
    """An answer on its way. n_tokens: so far. done: what it ended with, None before."""

    session: Session
    events: Iterator[AnswerEvent]
    n_tokens: int = 0
    done: Done | None = None
    _rounds: list[Round] = field(default_factory=list)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of an answer that is done."""
        n = self.done.stats.predicted_n if self.done else 0
        return tuple(self.session.answerer.decoder.history[-n:]) if n else ()

    @property
    def rounds(self) -> Rounds:
        """Its rounds so far."""
        return columns(self._rounds)

    def go_on(self, n: int) -> bool:
        """Go on for at least n tokens, or to the end; say whether it goes on from there."""
        wanted = self.n_tokens + n
        for event in self.events:
            if isinstance(event, Round):
                self._rounds.append(event)
                self.n_tokens += len(event.tokens)
            elif isinstance(event, Done):
                self.done = event
            if self.n_tokens >= wanted and not self.done:
                return True
        return False


def answer_all(answers: Sequence[Answering]) -> None:
    """Let all answers come to their ends, in turns of some tokens.

    The one with the fewest goes on. Time counts within rounds alone, so each is as fast as if it
    were the only one. Raises Interrupted.
    """
    going = list(answers)
    while going:
        behind = min(going, key=lambda answer: answer.n_tokens)
        if not behind.go_on(_TURN):
            going.remove(behind)
    if any(answer.done is None or answer.done.reason == "interrupted" for answer in answers):
        raise Interrupted("interrupted")
