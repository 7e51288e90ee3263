"""A conversation becomes prompt tokens, the engine's rounds become text."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from specli.engine.decode import Decoder
from specli.engine.stats import Stats
from specli.engine.types import End, Prefill, Round
from specli.errors import ModelError, TooLongError, UsageError
from specli.events import Done as Done
from specli.events import Text as Text
from specli.text import TextStream


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation. role: system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of the prompt has been evaluated."""

    n_done: int
    n_total: int


AnswerEvent: TypeAlias = Progress | Text | Round | Done


class Tokenizer(Protocol):
    """What an answer needs of a vocabulary."""

    def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a text, with exactly one BOS where the model wants it."""

    def piece(self, token: int) -> bytes:
        """Return the bytes that a token stands for in a text; none for control tokens."""

    def text(self, token: int) -> bytes:
        """Return a token as the vocabulary spells it."""


class ChatTemplate:
    """A model's Jinja template. It comes from an untrusted file and runs in jinja2's sandbox.

    It finds what transformers' apply_chat_template gives: that is what templates are written for.
    """

    def __init__(self, source: str, bos: str, eos: str) -> None:
        """bos, eos: how the vocabulary spells these tokens. Raises ModelError."""
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        self._fixed = {"bos_token": bos, "eos_token": eos, "tools": None, "documents": None}
        with _blamed_on_the_template("is broken"):
            self._template = environment.from_string(source)

    def render(self, messages: Sequence[Message]) -> str:
        """Return the conversation as the model wants it, up to where its answer begins."""
        turns = [{"role": message.role, "content": message.content} for message in messages]
        with _blamed_on_the_template("refuses this conversation"):
            return self._template.render(messages=turns, add_generation_prompt=True, **self._fixed)


class Generation(Extension):
    """Let {% generation %} ... {% endgeneration %} do nothing: it marks answers for training."""

    tags = {"generation"}  # noqa: RUF012  # as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return what is inside."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@contextmanager
def _blamed_on_the_template(what: str) -> Iterator[None]:
    """Turn whatever a template does wrong into a ModelError: it is somebody else's program."""
    try:
        yield
    except Exception as error:
        said = str(error) or type(error).__name__
        raise ModelError(
            f"the chat template {what}: {said}",
            "give another one with --chat-template FILE, or use specli run --raw",
        ) from None


def _raise_exception(message: str) -> Any:
    raise TemplateError(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


@dataclass(frozen=True, slots=True)
class Answerer:
    """A ready decoder with the vocabulary and the template around it."""

    decoder: Decoder
    tokenizer: Tokenizer
    template: ChatTemplate | None
    stats: Stats  # a fresh one: the method, and why speculation is off where it is
    stops: tuple[str, ...] = ()

    def reply(self, messages: Sequence[Message], max_tokens: int | None) -> Iterator[AnswerEvent]:
        """Answer the last message of a conversation."""
        if self.template is None:
            raise ModelError(
                "this model has no chat template",
                "give one with --chat-template FILE, or send the text as it is with --raw",
            )
        return self.complete(self.template.render(messages), max_tokens)

    def complete(self, prompt: str, max_tokens: int | None) -> Iterator[AnswerEvent]:
        """Continue a text, sent as it is.

        Yields Progress while the prompt is evaluated, each Round after its Text, which comes as it
        becomes certain, and Done. Raises UsageError where the prompt is empty or does not fit.
        """
        tokens = self.tokenizer.tokenize(prompt)
        if not tokens:
            raise UsageError("the prompt is empty", "give a text as an argument or through a pipe")
        n_ctx = self.decoder.target.model.n_ctx
        if len(tokens) >= n_ctx:
            raise TooLongError(len(tokens), n_ctx)
        return self._stream(tokens, max_tokens)

    def _stream(self, prompt: list[int], max_tokens: int | None) -> Iterator[AnswerEvent]:
        stats = replace(self.stats, accepted_at=[], drafted_at=[])
        text = TextStream(self.stops)
        for event in self.decoder.generate(prompt, max_tokens):
            if isinstance(event, Prefill):
                stats.add(event)
                yield Progress(event.n_done, event.n_total)
            elif isinstance(event, Round):
                pieces, n_kept = self._read(event, text)
                kept = event if n_kept == len(event.tokens) else event.cut(n_kept)
                stats.add(kept)
                yield from pieces
                yield kept
                if text.stopped:
                    self.decoder.cut(len(self.decoder.history) - len(event.tokens) + n_kept)
                    stats.costs = self.decoder.planner.costs()
                    yield Done("stop", stats)
                    return
            elif isinstance(event, End):
                stats.costs = self.decoder.planner.costs()
                stats.draft_muted = self.decoder.drafter.muted if self.decoder.drafter else ""
                if not self.decoder.lookup:
                    stats.reason_off = stats.reason_off or stats.draft_muted
                if rest := text.flush():
                    yield Text(rest, drafted=False)
                yield Done(event.reason, stats)

    def _read(self, done: Round, text: TextStream) -> tuple[list[Text], int]:
        """Return the text of a round, and how many of its tokens it took to the stop string."""
        pieces = []
        for i, token in enumerate(done.tokens):
            if piece := text.feed(self.tokenizer.piece(token)):
                pieces.append(Text(piece, drafted=i < done.n_accepted))
            if text.stopped:
                return pieces, i + 1
        return pieces, len(done.tokens)
