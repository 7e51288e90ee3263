"""A conversation becomes prompt tokens, the engine's rounds become text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from specli.engine.decode import Decoder
from specli.engine.stats import Stats
from specli.engine.types import DraftPrefill, End, Prefill, Round
from specli.errors import ModelError, TooLongError, UsageError
from specli.events import Done as Done
from specli.events import Text as Text
from specli.template import ChatTemplate as ChatTemplate
from specli.template import Message as Message
from specli.thinking import AnswerStream, ThoughtSplitter


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


@dataclass(frozen=True, slots=True)
class Answerer:
    """A ready decoder with the vocabulary and the template around it."""

    decoder: Decoder
    tokenizer: Tokenizer
    template: ChatTemplate | None
    stats: Stats  # a fresh one: the method, and why speculation is off where it is
    stops: tuple[str, ...] = ()

    @property
    def remark(self) -> str:
        """Say what of the settings the template cannot do; "" where there is nothing."""
        return self.template.remark if self.template else ""

    def reply(self, messages: Sequence[Message], max_tokens: int | None) -> Iterator[AnswerEvent]:
        """Answer the last message of a conversation."""
        if self.template is None:
            raise ModelError(
                "this model has no chat template",
                "give one with --chat-template FILE, or send the text as it is with --raw",
            )
        prompt = self.template.render(messages)
        return self._answer(prompt, max_tokens, self.template.splitter(prompt))

    def complete(self, prompt: str, max_tokens: int | None) -> Iterator[AnswerEvent]:
        """Continue a text, sent as it is. What comes is text, whatever it looks like.

        Yields Progress while the prompt is evaluated, each Round after its Text, which comes as it
        becomes certain, and Done. Raises UsageError where the prompt is empty or does not fit.
        """
        return self._answer(prompt, max_tokens, ThoughtSplitter(None))

    def _answer(
        self, prompt: str, max_tokens: int | None, splitter: ThoughtSplitter
    ) -> Iterator[AnswerEvent]:
        tokens = self.tokenizer.tokenize(prompt)
        if not tokens:
            raise UsageError("the prompt is empty", "give a text as an argument or through a pipe")
        model = self.decoder.target.model
        if len(tokens) >= model.n_ctx:
            raise TooLongError(len(tokens), model.n_ctx, model.n_ctx_train)
        return self._stream(tokens, max_tokens, AnswerStream(self.stops, splitter))

    def _stream(
        self, prompt: list[int], max_tokens: int | None, text: AnswerStream
    ) -> Iterator[AnswerEvent]:
        stats = replace(self.stats, accepted_at=[], drafted_at=[])
        for event in self.decoder.generate(prompt, max_tokens):
            if isinstance(event, Prefill):
                stats.add(event)
                yield Progress(event.n_done, event.n_total)
            elif isinstance(event, DraftPrefill):
                stats.add(event)
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
                for rest, thought in text.flush():
                    yield Text(rest, drafted=False, thought=thought)
                yield Done(event.reason, stats)

    def _read(self, done: Round, text: AnswerStream) -> tuple[list[Text], int]:
        """Return the text of a round, and how many of its tokens it took to the stop string."""
        pieces = []
        for i, token in enumerate(done.tokens):
            drafted = i < done.n_accepted
            for piece, thought in text.feed(self._bytes(token, text)):
                pieces.append(Text(piece, drafted, thought))
            if text.stopped:
                return pieces, i + 1
        return pieces, len(done.tokens)

    def _bytes(self, token: int, text: AnswerStream) -> bytes:
        """Return what a token stands for: its bytes, or the mark of a tag that it is."""
        data = self.tokenizer.piece(token)
        if data or not text.marks:
            return data
        return text.marks.get(self.tokenizer.text(token), b"")
