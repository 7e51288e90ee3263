"""A loaded pair that answers a program."""

import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

from specli.errors import SpecliError, UsageError
from specli.events import Done, Event, Start, Text
from specli.settings import Settings, check_text
from specli.worker import Worker

if TYPE_CHECKING:
    from specli.assemble import Session
    from specli.chat import AnswerEvent, Message
    from specli.engine.stats import Stats
    from specli.engine.types import Reason

Prompt: TypeAlias = "str | Sequence[Message | Mapping[str, str]]"


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. thought: what the model thought before it, "" where it did not."""

    text: str
    reason: "Reason"
    stats: "Stats"
    thought: str = ""


class Speculator:
    """A loaded pair that answers; made by `load`. One thread at a time may use it.

    start: what answers. notes: what else a person might want to know of how it was loaded. Caches
    stay from one answer to the next: only what is new in a prompt is evaluated.
    Ctrl-C raises KeyboardInterrupt and leaves it as ready as before.
    """

    def __init__(
        self,
        session: "Session",
        settings: Settings,
        notes: Sequence[str],
        worker: Worker,
        stack: ExitStack,
    ) -> None:
        """stack: holds the session, and is closed with this object."""
        from specli.assemble import start_of

        self.start: Start = start_of(session, settings)
        self.notes = tuple(notes)
        self._session = session
        self._worker = worker
        self._answering: Iterator[AnswerEvent] | None = None
        self._finalizer = weakref.finalize(self, free, worker, stack)

    def stream(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = None,
        stop: str | Sequence[str] = (),
        raw: bool = False,
    ) -> Iterator[Event]:
        """Yield the events of an answer: Start, Texts as they become certain, Done.

        prompt: a text, or the messages of a conversation, the last one to be answered. max_tokens:
        None for as many as the context holds. stop: texts before which the answer ends. raw:
        continue a text as it is, without the chat template. Whoever has enough may break off. The
        next stream ends this one. Raises SpecliError.
        """
        from specli.chat import Message

        if not self._finalizer.alive:
            raise SpecliError("this speculator is closed", "load it again")
        messages = _messages(prompt, Message)
        text = prompt if raw and isinstance(prompt, str) else None
        if raw and text is None:
            raise UsageError("raw is for a text, messages need the chat template")
        with named_in_python():
            stops = (stop,) if isinstance(stop, str) else tuple(stop)
            Settings(stops=stops, max_tokens=max_tokens)  # raises where one makes no sense
            answerer = replace(self._session.answerer, stops=stops)
            answering = self._worker.do(
                lambda: (
                    answerer.reply(messages, max_tokens)
                    if text is None
                    else answerer.complete(text, max_tokens)
                )
            )
        _end(self._answering)
        self._answering = answering
        wanted = {"max_tokens": max_tokens, "stops": list(stops)}
        return self._events(
            replace(self.start, settings={**self.start.settings, **wanted}), answering
        )

    def answer(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = None,
        stop: str | Sequence[str] = (),
        raw: bool = False,
    ) -> Answer:
        """Return a whole answer. As stream."""
        return _whole(self.stream(prompt, max_tokens=max_tokens, stop=stop, raw=raw))

    def chat(self, system: str = "") -> "Conversation":
        """Begin a conversation."""
        return Conversation(self, system)

    def close(self) -> None:
        """Free the models, and keep what was learned of them."""
        _end(self._answering)
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _events(self, start: Start, answering: "Iterator[AnswerEvent]") -> Iterator[Event]:
        try:
            yield start
            while True:
                if self._answering is not answering:
                    raise SpecliError("this answer was ended by the next one, or by close()")
                event = self._worker.do(lambda: _next_shown(answering))
                if event is None:
                    return
                yield event
        finally:
            _end(answering)


class Conversation:
    """Turns that follow each other, each answered in the light of those before.

    messages: all so far, the system message first where there is one; they may be changed between
    turns.
    """

    def __init__(self, speculator: Speculator, system: str = "") -> None:
        from specli.chat import Message

        self._speculator = speculator
        self.messages: list[Message] = [Message("system", system)] if system else []

    def send(
        self, text: str, *, max_tokens: int | None = None, stop: str | Sequence[str] = ()
    ) -> Iterator[Event]:
        """Yield the events of the answer to one more message.

        Both become part of the conversation when it ends, also where it is broken off after its
        first piece. Raises SpecliError as stream does, with the conversation unchanged.
        """
        from specli.chat import Message

        turns = [*self.messages, Message("user", text)]
        events = self._speculator.stream(turns, max_tokens=max_tokens, stop=stop)
        return self._kept(turns, events)

    def answer(
        self, text: str, *, max_tokens: int | None = None, stop: str | Sequence[str] = ()
    ) -> Answer:
        """Return the whole answer to one more message. As send."""
        return _whole(self.send(text, max_tokens=max_tokens, stop=stop))

    def _kept(self, turns: "list[Message]", events: Iterator[Event]) -> Iterator[Event]:
        from specli.chat import Message

        said, is_whole = {False: "", True: ""}, False
        try:
            for event in events:
                is_whole = isinstance(event, Done)
                if isinstance(event, Text):
                    said[event.thought] += event.text
                yield event
        finally:
            if said[False] or is_whole:
                self.messages = [*turns, Message("assistant", said[False], said[True])]


def _whole(events: Iterator[Event]) -> Answer:
    said = {False: "", True: ""}
    for event in events:
        if isinstance(event, Text):
            said[event.thought] += event.text
        elif isinstance(event, Done):
            return Answer(said[False], event.reason, event.stats, said[True])
    raise SpecliError("the answer has no end")


def _next_shown(events: "Iterator[AnswerEvent]") -> Text | Done | None:
    """Return the next event that a program sees, None after the last."""
    return next((event for event in events if isinstance(event, Text | Done)), None)


def _end(events: "Iterator[AnswerEvent] | None") -> None:
    """Let an answer go that waits to be asked for more: between rounds, where all is in order."""
    if close := getattr(events, "close", None):
        close()


def _messages(prompt: Prompt, kind: "type[Message]") -> "list[Message]":
    turns = [kind("user", prompt)] if isinstance(prompt, str) else list(prompt)
    found = [_as_message(t, kind) for t in turns]
    for message in found:
        check_text("the prompt", message.content)
    return found


def _as_message(turn: "Message | Mapping[str, str]", kind: "type[Message]") -> "Message":
    if not isinstance(turn, Mapping):
        return turn
    return kind(turn["role"], turn["content"], turn.get("thought", ""))


def free(worker: Worker, stack: ExitStack) -> None:
    """Free what a stack holds, when the worker has done with it."""
    worker.close()
    stack.close()


@contextmanager
def named_in_python() -> Iterator[None]:
    """Let errors call an option as Python does: draft_tokens, not --draft-tokens."""
    try:
        yield
    except SpecliError as error:
        error.message, error.hint = map(_in_python, (error.message, error.hint))
        error.args = (error.message,)
        raise


def _in_python(text: str) -> str:
    return re.sub(r"(?<!run )--([a-z-]+[a-z])", lambda match: match[1].replace("-", "_"), text)
