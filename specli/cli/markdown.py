"""Markdown that comes piece by piece: a block is shown as it comes, and set when it is complete."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specli.cli.typesetting import Typesetter

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,}) *([^\s`]*).*\n")


@dataclass(frozen=True, slots=True)
class Step:
    """What to write next. replaces: in the place of what may be replaced.

    rest: the end of the text, after a newline, that may be replaced from now on; None: that goes
    on as before.
    """

    text: str
    replaces: bool = False
    rest: str | None = None


@dataclass(slots=True)
class _Code:
    """A code block that has begun. fence: what ends it, if it is as long. colour: sets a line."""

    fence: str
    colour: Callable[[str], str]

    def is_ended_by(self, line: str) -> bool:
        mark = line.strip()
        is_mark = len(mark) >= len(self.fence) and not mark.strip(self.fence[0])
        return is_mark and len(line) - len(line.lstrip(" ")) < 4


class Rendered:
    """Turns Markdown into what to write.

    Blocks, items of a list and lines of code are set one by one. What is not all on the screen any
    more, or was moved by a resize, stays as it came.
    """

    def __init__(self, make_setter: "Callable[[], Typesetter]") -> None:
        """make_setter: called once, when the first line is complete: it takes a while to load."""
        self._make_setter = make_setter
        self._raw = ""  # what came after the last complete block
        self._code: _Code | None = None
        self._has_begun = False

    @cached_property
    def _setter(self) -> "Typesetter":
        return self._make_setter()

    def feed(self, text: str, can_replace: bool, width: int) -> Step:
        """Take in more text. can_replace: what was given as rest, and since, is on the screen."""
        head, newline, tail = text.rpartition("\n")
        step = self._take(head + newline, can_replace, width) if newline else Step("")
        self._raw += tail
        return Step(step.text + tail, step.replaces, None if step.rest is None else self._raw)

    def finish(self, can_replace: bool, width: int) -> Step:
        """Set what there is: nothing more comes."""
        step = Step("")
        if self._raw and can_replace:
            head, newline, tail = self._raw.rpartition("\n")
            self._raw = head + newline
            done = self._line(tail + "\n", width) if tail else ""
            done += self._setter.blocks(self._raw, width) if self._raw else ""
            step = Step(done, replaces=True, rest="")
        self._raw, self._code, self._has_begun = "", None, False
        return step

    def _take(self, text: str, can_replace: bool, width: int) -> Step:
        """Take in whole lines."""
        came = self._raw + text
        self._raw = done = ""
        for line in came.split("\n")[:-1]:
            done += self._line(line + "\n", width)
        if self._raw == came:
            return Step(text)
        if can_replace and done + self._raw != came:
            return Step(done + self._raw, replaces=True, rest=self._raw)
        return Step(text, rest=self._raw)

    def _line(self, line: str, width: int) -> str:
        """Take in a line; return what is complete now."""
        if self._code:
            return self._code_line(line)
        if not self._raw and not line.strip():
            return "\n" if self._has_begun else ""
        self._has_begun = True
        complete, self._raw = self._setter.split(self._raw + line)
        done = self._setter.blocks(complete, width) if complete else ""
        if fence := _FENCE.fullmatch(self._raw):
            self._code = _Code(fence[1], self._setter.code(fence[2]))
            self._raw = ""
            done += self._setter.quiet(line)
        return done

    def _code_line(self, line: str) -> str:
        assert self._code
        if self._code.is_ended_by(line):
            self._code = None
            return self._setter.quiet(line)
        return self._code.colour(line)
