"""What a model thinks before it answers, told apart from the answer by the tags of its family."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from operator import add
from typing import Literal, TypeAlias

from specli.text import StopStrings, TextStream, overlap

Piece: TypeAlias = tuple[str, bool]  # a text, and whether it is thought


@dataclass(frozen=True, slots=True)
class Tags:
    """How the models of a family write down what they think.

    start, end: around a thought. around: what may stand between thought and answer, or end the
    answer, and is part of neither. sign: what their templates contain, "" for start or end.
    """

    start: str
    end: str
    around: tuple[str, ...] = ()
    sign: str = ""

    def is_in(self, template: str) -> bool:
        """Say whether a template is of this family."""
        signs = (self.sign,) if self.sign else (self.start, self.end)
        return any(sign in template for sign in signs)


# The first that a template names is taken: a special case stands before what it looks like.
FAMILIES = (
    Tags(  # gpt-oss
        "<|channel|>analysis<|message|>",
        "<|end|>",
        ("<|start|>assistant", "<|channel|>final<|message|>"),
        "<|channel|>analysis",
    ),
    Tags("<|channel>thought", "<channel|>"),  # Gemma 4
    Tags("<|think|>", "<|end|>", ("<|begin|>assistant", "<|content|>")),  # Solar Open
    Tags(  # Granite 3.2 and 3.3
        "<think>", "</think>", ("<response>", "</response>"), "<response></response>"
    ),
    Tags(  # Apriel
        "Here are my reasoning steps:",
        "[BEGIN FINAL RESPONSE]",
        ("[END FINAL RESPONSE]",),
        "[BEGIN FINAL RESPONSE]",
    ),
    Tags(  # Command R7B, Command A
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        ("<|START_RESPONSE|>", "<|START_TEXT|>", "<|END_RESPONSE|>", "<|END_TEXT|>"),
    ),
    Tags("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    Tags("[THINK]", "[/THINK]"),  # Magistral, Ministral
    Tags("<seed:think>", "</seed:think>"),  # Seed-OSS
    Tags("<think:opensource>", "</think:opensource>"),  # Hunyuan 3
    Tags("<mm:think>", "</mm:think>"),  # MiniMax M3
    Tags("◁think▷", "◁/think▷"),  # Kimi VL
    Tags("<think>", "</think>"),  # Qwen, QwQ, DeepSeek, GLM, SmolLM3, Nemotron, and most others
)


def find_tags(template: str) -> Tags | None:
    """Return the tags that a chat template knows of; None where its model does not think."""
    return next((tags for tags in FAMILIES if tags.is_in(template)), None)


# Tags are control tokens in some vocabularies. These have no text, so each is given a character
# that no text has (U+FDD0 and on are set aside for such uses).
_FIRST_MARK = 0xFDD0
_TOKEN = re.compile(r"</?[^<>]+>|\[[^\[\]]+\]|◁[^◁▷]+▷")


class ThoughtSplitter:
    """Tells thoughts from answer in a text that comes piece by piece.

    A thought stands at the beginning. What comes later and looks like one is part of the answer, as
    is everything where the model does not think. A thought that does not end stays a thought.
    """

    def __init__(self, tags: Tags | None, *, begun: bool = False) -> None:
        """begun: the prompt ends within a thought."""
        tags = tags or Tags("", "")
        names = [_TOKEN.findall(tag) for tag in (tags.start, tags.end, *tags.around)]
        unique = dict.fromkeys(name for some in names for name in some)
        self.marks = {name: chr(_FIRST_MARK + i) for i, name in enumerate(unique)}
        self._unmark = dict.fromkeys(map(ord, self.marks.values()))
        self._start, self._end = self._spellings([tags.start]), self._spellings([tags.end])
        self._around = self._spellings(tags.around)
        self._state: Literal["before", "thought", "answer"] = "before" if tags.start else "answer"
        self._fresh = False  # nothing was thought yet since the thought began
        self._thought = begun  # there is a thought
        self._held = ""
        if begun:
            self._begin()

    def _spellings(self, tags: Sequence[str]) -> list[str]:
        """Return tags with each of their tokens as text or as its mark.

        llama.cpp gives out the text of some control tokens of gpt-oss, not of others.
        """
        spelled = []
        for tag in tags:
            names = _TOKEN.findall(tag)
            texts = _TOKEN.split(tag)
            for chosen in product(*((name, self.marks[name]) for name in names)):
                spelled.append(texts[0] + "".join(map(add, chosen, texts[1:])))
        return [tag for tag in spelled if tag]

    def feed(self, text: str) -> list[Piece]:
        """Take text in, control tokens as `marks` has them; return what is certain."""
        return self._take(text, final=False)

    def flush(self) -> list[Piece]:
        """Return what was held back: nothing more comes."""
        return self._take("", final=True)

    def _take(self, text: str, final: bool) -> list[Piece]:
        self._held += text
        pieces: list[Piece] = []
        state = ""
        while state != self._state:
            state = self._state
            if state == "before":
                self._before(final)
            elif state == "thought":
                pieces.append((self._within(final), True))
            else:
                pieces.append((self._after(final), False))
        clean = [(piece.translate(self._unmark), thought) for piece, thought in pieces]
        return [(piece, thought) for piece, thought in clean if piece]

    def _begin(self) -> None:
        self._state, self._fresh, self._thought = "thought", True, True

    def _before(self, final: bool) -> None:
        """Find out whether a thought begins, or the answer."""
        text = self._held.lstrip()
        while (tag := _first_of(text, self._around)) is not None:
            self._thought = True
            text = self._held = text[len(tag) :].lstrip()
        if (tag := _first_of(text, self._start)) is not None:
            self._held = text[len(tag) :]
            self._begin()
        elif final or not any(tag.startswith(text) for tag in (*self._start, *self._around)):
            self._held = text if self._thought else self._held
            self._state = "answer"

    def _within(self, final: bool) -> str:
        """Return what is thought, without the line breaks after its beginning."""
        if self._fresh:
            self._held = self._held.lstrip("\r\n")
            self._fresh = not self._held
        found = [(at, tag) for tag in self._end if (at := self._held.find(tag)) >= 0]
        if found:
            at, tag = min(found)
            thought, self._held = self._held[:at], self._held[at + len(tag) :]
            self._state = "before"
            return thought
        return self._release(self._end, final)

    def _after(self, final: bool) -> str:
        for tag in self._around:
            self._held = self._held.replace(tag, "")
        return self._release(self._around, final)

    def _release(self, tags: Sequence[str], final: bool) -> str:
        """Let go of the text that cannot become a tag."""
        n_held = 0 if final else max((overlap(self._held, tag) for tag in tags), default=0)
        end = len(self._held) - n_held
        text, self._held = self._held[:end], self._held[end:]
        return text


def _first_of(text: str, tags: Sequence[str]) -> str | None:
    """Return the tag that a text begins with."""
    return next((tag for tag in tags if text.startswith(tag)), None)


class AnswerStream:
    """Turns the bytes of token after token into thoughts and answer, up to a stop string."""

    def __init__(self, stops: Sequence[str], splitter: ThoughtSplitter) -> None:
        """stops: what ends the answer; in a thought it does not."""
        self._text = TextStream()
        self._splitter = splitter
        self._stops = StopStrings(stops)
        self.marks = {name.encode(): mark.encode() for name, mark in splitter.marks.items()}

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found: nothing more is wanted."""
        return self._stops.found

    def feed(self, data: bytes) -> list[Piece]:
        """Take the bytes of one token in; return what is certain to stay."""
        return self._stop(self._splitter.feed(self._text.feed(data)))

    def flush(self) -> list[Piece]:
        """Return what was held back: nothing more comes."""
        pieces = self._stop([*self._splitter.feed(self._text.flush()), *self._splitter.flush()])
        rest = self._stops.flush()
        return [*pieces, (rest, False)] if rest else pieces

    def _stop(self, pieces: Sequence[Piece]) -> list[Piece]:
        kept = []
        for text, thought in pieces:
            text = text if thought else self._stops.feed(text)
            if text:
                kept.append((text, thought))
            if self.stopped:
                break
        return kept
