"""What the model is given of a conversation that outgrows its context."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from specli.chat import Answerer, AnswerEvent, Done, Text
from specli.conversations import Turn, messages
from specli.engine.stats import joined

Overflow: TypeAlias = Literal["stop", "drop"]
# An answer has room for an eighth of the context, else the oldest turns go, until half is free:
# each time all that stays is evaluated again, so it had better be seldom.
_ROOM, _KEPT = 8, 2


class Window:
    """The turns that the model is given: all, or the latest where the oldest were dropped.

    The system message always stays, and so does the turn that is being answered.
    """

    def __init__(
        self,
        overflow: Overflow,
        n_dropped: int = 0,
        on_drop: Callable[[int], None] = lambda n: None,
    ) -> None:
        """n_dropped: so many were dropped before. on_drop: told how many more are."""
        self._overflow = overflow
        self.n_dropped = n_dropped
        self._on_drop = on_drop

    def reply(
        self, answerer: Answerer, system: str, turns: Sequence[Turn], max_tokens: int | None
    ) -> Iterator[AnswerEvent]:
        """Answer the last turn, as Answerer.reply does, once or more often.

        Where turns may be dropped in mid-answer, what comes then is the rest of the same answer.
        """
        self.n_dropped = min(self.n_dropped, max(len(turns) - 1, 0))
        if self._overflow == "stop":
            return answerer.reply(messages(system, turns[self.n_dropped :]), max_tokens)
        n_ctx = answerer.decoder.target.model.n_ctx
        room = n_ctx // _ROOM if max_tokens is None else min(max_tokens, n_ctx // _ROOM)
        if self._size(answerer, system, turns, "") > n_ctx - room:
            self._drop(answerer, system, turns, "")
        events = answerer.reply(messages(system, turns[self.n_dropped :]), max_tokens)
        return self._on_and_on(events, answerer, system, turns, max_tokens)

    def _on_and_on(
        self,
        events: Iterator[AnswerEvent],
        answerer: Answerer,
        system: str,
        turns: Sequence[Turn],
        max_tokens: int | None,
    ) -> Iterator[AnswerEvent]:
        answer, thought, stats = "", False, None
        while True:
            for event in events:
                if isinstance(event, Text):
                    answer, thought = answer + event.text, thought or event.thought
                if isinstance(event, Done):
                    done = replace(
                        event, stats=joined(stats, event.stats) if stats else event.stats
                    )
                    break
                yield event
            else:
                return
            full = done.reason == "context" and not thought  # a thought cannot be taken up again
            if not full or not self._drop(answerer, system, turns, answer):
                yield done
                return
            stats = done.stats
            left = None if max_tokens is None else max_tokens - stats.predicted_n
            events = answerer.complete(self._prompt(answerer, system, turns, answer), left)

    def _drop(self, answerer: Answerer, system: str, turns: Sequence[Turn], answer: str) -> bool:
        """Drop the oldest turns until half of the context is free; say whether that made room.

        Without any turn to drop, nothing changes.
        """
        n_ctx, before = answerer.decoder.target.model.n_ctx, self.n_dropped
        size = n_ctx
        while self.n_dropped < len(turns) - 1 and size > n_ctx // _KEPT:
            self.n_dropped += 1
            size = self._size(answerer, system, turns, answer)
        if self.n_dropped > before:
            self._on_drop(self.n_dropped - before)
        return size < n_ctx

    def _size(self, answerer: Answerer, system: str, turns: Sequence[Turn], answer: str) -> int:
        return len(answerer.tokenizer.tokenize(self._prompt(answerer, system, turns, answer)))

    def _prompt(self, answerer: Answerer, system: str, turns: Sequence[Turn], answer: str) -> str:
        """Return the conversation as the model's template has it, up to the end of the answer."""
        if answerer.template is None:
            return answer
        return answerer.template.render(messages(system, turns[self.n_dropped :])) + answer
