"""A loaded pair that answers a program."""

import re
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from specli.errors import AnswerEnded, SpecliError, UsageError
from specli.events import Done, Event, Start, Text
from specli.settings import Settings, check_text, shown
from specli.worker import Worker

if TYPE_CHECKING:
    from specli.assemble import Session
    from specli.chat import AnswerEvent, Message
    from specli.engine.stats import Stats
    from specli.engine.types import Reason

Prompt: TypeAlias = "str | Sequence[Message | Mapping[str, Any]]"


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. thought: what the model thought before it, "" where it did not."""

    text: str
    reason: "Reason"
    stats: "Stats"
    thought: str = ""


class Speculator:
    """A loaded pair that answers; made by `load`.

    start: what answers. notes: what else a person might want to know of how it was loaded. Caches
    stay from one answer to the next: only what is new in a prompt is evaluated.
    Ctrl-C raises KeyboardInterrupt and leaves it as ready as before. Threads wait for each other's
    `answer`. A fork cannot use it.
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
        self._lock = RLock()  # held for a whole answer, of a stream for each event
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
        next answer ends this one, which raises AnswerEnded if it is asked for more. Raises
        SpecliError.
        """
        with self._turn(), named_in_python():
            stops = _stops(stop)
            Settings(stops=stops, max_tokens=max_tokens)  # raises where one makes no sense
            answering = self._begin(prompt, max_tokens, stops, raw)
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
        """Return a whole answer. As stream, but other threads wait until it is there."""
        with self._turn():
            return _whole(self.stream(prompt, max_tokens=max_tokens, stop=stop, raw=raw))

    def chat(self, system: str = "") -> "Conversation":
        """Begin a conversation."""
        return Conversation(self, system)

    def close(self) -> None:
        """Free the models, and keep what was learned of them. To close twice is no error."""
        with self._lock if self._worker.is_here else nullcontext():
            _end(self._answering)
            self._answering = None
            self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for what other threads ask. Raises SpecliError where nothing can be asked."""
        self._worker.check_here()  # a lock that was held at the fork stays so
        with self._lock:
            if not self._finalizer.alive:
                raise SpecliError("this speculator is closed", "load it again")
            yield

    def _begin(
        self, prompt: Prompt, max_tokens: int | None, stops: tuple[str, ...], raw: bool
    ) -> "Iterator[AnswerEvent]":
        from specli.messages import read_prompt

        answerer = replace(self._session.answerer, stops=stops)
        if not raw:
            messages = read_prompt(prompt)
            return self._worker.do(lambda: answerer.reply(messages, max_tokens))
        if not isinstance(prompt, str):
            raise UsageError("raw is for a text, messages need the chat template")
        check_text("the prompt", prompt)
        return self._worker.do(lambda: answerer.complete(prompt, max_tokens))

    def _events(self, start: Start, answering: "Iterator[AnswerEvent]") -> Iterator[Event]:
        try:
            yield start
            while True:
                with self._turn():
                    if self._answering is not answering:
                        raise AnswerEnded(
                            "this answer was ended by the next one of the same model",
                            "take answer(): it waits for its turn; or load the model once more",
                        )
                    event = self._worker.do(lambda: _next_shown(answering))
                if event is None:
                    return
                yield event
        finally:
            _end(answering)  # without the lock: the garbage collector may be here in any thread


class Conversation:
    """Turns that follow each other, each answered in the light of those before.

    messages: all so far, the system message first where there is one; they may be changed between
    turns.
    """

    def __init__(self, speculator: Speculator, system: str = "") -> None:
        from specli.chat import Message

        self._speculator = speculator
        self._last: Callable[[], Generator[Event, None, None] | None] = lambda: None
        self.messages: list[Message] = [Message("system", system)] if system else []

    def send(
        self, text: str, *, max_tokens: int | None = None, stop: str | Sequence[str] = ()
    ) -> Iterator[Event]:
        """Yield the events of the answer to one more message.

        Both become part of the conversation when it ends, also where it is broken off after its
        first piece. Raises SpecliError as stream does, with the conversation unchanged.
        """
        from specli.chat import Message

        with self._speculator._turn():
            if last := self._last():  # broken off, but not let go
                last.close()
            turns = [*self.messages, Message("user", text)]
            events = self._speculator.stream(turns, max_tokens=max_tokens, stop=stop)
            kept = self._kept(turns, events)
            self._last = weakref.ref(kept)
            return kept

    def answer(
        self, text: str, *, max_tokens: int | None = None, stop: str | Sequence[str] = ()
    ) -> Answer:
        """Return the whole answer to one more message. As send, but other threads wait."""
        with self._speculator._turn():
            return _whole(self.send(text, max_tokens=max_tokens, stop=stop))

    def _kept(
        self, turns: "list[Message]", events: Iterator[Event]
    ) -> Generator[Event, None, None]:
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
        with suppress(ValueError):  # another thread ends it at this moment
            close()


def _stops(stop: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(stop, str):
        return (stop,)
    if not isinstance(stop, Iterable):
        raise UsageError(f"--stop is {shown(stop)}, a text or a list of texts is wanted")
    return tuple(stop)


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
