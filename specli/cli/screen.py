"""Text that grows on a terminal, and one line under it that is there only for now.

The cursor stays where the text ends; the status line stands one line below. So whatever a resize
does to the screen, all that is not the answer is below the cursor, and one erasure removes it.
"""

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from wcwidth import wcwidth

from specli.cli.streams import one_file, write
from specli.text import terminal_safe

# Synchronized output: terminals that know it show a frame whole, the others ignore the two marks.
_BEGIN, _END = "\x1b[?2026h\x1b[?25l", "\x1b[?25h\x1b[?2026l"
_ERASE_BELOW = "\x1b[J"
# One line down and up again makes room at the foot of the screen; then the place is kept.
_TO_STATUS, _BACK = "\x1bD\x1bM\x1b7\x1bD\r\x1b[?7l", "\x1b[?7h\x1b8"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_UNIT = re.compile(r"\x1b\[[0-9;]*m|.", re.DOTALL)

LEAST_WIDTH, LEAST_HEIGHT = 20, 4  # of a screen that has room for a status line
TAB = 8

# Without Unicode: bullets, lines, dots, dashes and quotes look like these.
_PLAIN_MARKS = {0x2022: "*", 0xB7: "|", 0x258C: "|", 0x2500: "-", 0x2501: "-", 0x2026: "~"}
_PLAIN_MARKS |= {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2013: "-", 0x2014: "-"}

# Of these, terminals do not agree on the width: soft hyphens, conjuncts of Indic scripts and
# Hangul, and what makes one picture of several characters.
_DISPUTED = re.compile(
    "[\u00ad\u0900-\u0dff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u200d\u20e3\ufe00-\ufe0f"
    "\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text has come to: rows below its beginning, and a column, 0 to the width.

    At the width the next character goes to the next row. line_row: where its last line begins.
    sure: all terminals agree on it.
    """

    row: int = 0
    column: int = 0
    line_row: int = 0
    sure: bool = True

    def after_resize(self, before: int, now: int) -> "Place":
        """Return where most terminals put the cursor: they break the last line anew."""
        cells = (self.row - self.line_row) * before + self.column
        return replace(self, column=cells - max(0, cells - 1) // now * now, sure=False)


def advance(place: Place, text: str, width: int) -> Place:
    """Return where a text ends that begins at a place. Styles in it take no room."""
    row, column, line_row = place.row, place.column, place.line_row
    for i, line in enumerate(_STYLE.sub("", text).split("\n")):
        if i:
            row, column, line_row = row + 1, 0, row + 1
        rows, column = _along(line, column, width)
        row += rows
    return Place(row, column, line_row, place.sure and not _DISPUTED.search(text))


def _along(line: str, column: int, width: int) -> tuple[int, int]:
    """Return the rows that a line goes down, and its last column."""
    if line.isascii() and "\t" not in line:
        end = column + len(line)
        rows = max(0, end - 1) // width if line else 0
        return rows, end - rows * width
    rows = 0
    for character in line:
        if character == "\t":
            column = min(column // TAB * TAB + TAB, width - 1)
            continue
        cells = max(0, wcwidth(character))
        if cells and column + cells > width:
            rows, column = rows + 1, 0
        column += cells
    return rows, column


def clipped(text: str, width: int) -> str:
    """Return as much of a text as fits into some cells."""
    end = column = 0
    for end, character in enumerate(text):
        column += max(0, wcwidth(character))
        if column > width:
            return text[:end]
    return text


def for_terminal(text: str, encoding: str) -> str:
    """Return a model's text as a terminal with this encoding shows it: harmless, and as wide."""
    return encodable(terminal_safe(text), encoding)


def encodable(safe: str, encoding: str) -> str:
    """Return a text in characters that an encoding has, as wide."""
    if is_unicode(encoding):
        return safe
    return safe.translate(_PLAIN_MARKS).encode(encoding, "replace").decode(encoding)


def is_unicode(encoding: str) -> bool:
    """Say whether an encoding has every character."""
    return encoding.lower().replace("-", "").startswith("utf")


def _terminal_size() -> tuple[int, int]:
    """Return columns and rows of the terminal behind stdout; the usual ones where it has none."""
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return 80, 24
    return columns or 80, rows or 24


class Screen:
    """The one writer of an answer on a terminal. Each call is one write."""

    def __init__(
        self,
        out: Callable[[str], None] = write,
        size: Callable[[], tuple[int, int]] = _terminal_size,
        encoding: str | None = None,
        has_status: bool | None = None,
    ) -> None:
        """has_status: a status line can be shown; by default, where stderr is this terminal."""
        self._out = out
        self._size = size
        self.encoding = encoding or sys.stdout.encoding or "ascii"
        self._has_status = one_file() if has_status is None else has_status
        self._status = ""
        self._held = ""
        self._place = Place()  # since the beginning of what may be replaced
        self._width, self._height = self._size()
        self._is_lost = False

    def lose(self) -> None:
        """Know that the cursor may be anywhere: somebody else has written here."""
        self._is_lost = True

    def look(self) -> None:
        """Notice a resize. What may be replaced can then not be found any more."""
        if self._is_lost:
            self._is_lost = False
            self._place = Place(sure=False)
            self._status = ""
        width, height = self._size()
        if (width, height) != (self._width, self._height):
            self._place = self._place.after_resize(self._width, width)
            self._width, self._height = width, height

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self._width

    @property
    def status_width(self) -> int:
        """Columns that a status line has; 0 where there is none."""
        has_room = self._width >= LEAST_WIDTH and self._height >= LEAST_HEIGHT
        return self._width - 1 if self._has_status and has_room else 0

    def can_replace(self) -> bool:
        """Say whether what may be replaced is all on the screen still, and where."""
        return self._place.sure and self._place.row <= self._height - 2

    def write(
        self, text: str, status: str = "", *, replaces: bool = False, rest: str | None = None
    ) -> None:
        """Add text, and show a status line under it.

        replaces: it comes in the place of what may be replaced. rest: the end of the text, after a
        newline, that may be replaced from now on; None: that goes on as before.
        """
        status = status if self.status_width else ""
        if not (text or replaces) and status == self._status and rest is None:
            return
        start = ""
        before = self._place
        if replaces:
            start = "\r" + (f"\x1b[{before.row}A" if before.row else "") + _ERASE_BELOW
            before, self._held = Place(), ""
        shown, self._held, after = self._up_to_the_edge(before, self._held + text, status)
        if rest is not None:
            sure = replaces or before.sure or len(rest) <= len(text)
            after = advance(Place(sure=sure), rest[: len(rest) - len(self._held)], self._width)
        if after.column >= self._width:
            status = ""  # nothing could be held back
        self._place = after
        foot = f"{_TO_STATUS}{status}{_BACK}" if status else ""
        erase = _ERASE_BELOW if self._status else ""
        frame = f"{erase}{start}{shown}{foot}"
        self._status = self._status or status  # a signal may come before the frame is written
        if frame:
            self._out(self._encodable(f"{_BEGIN}{frame}{_END}" if erase or foot else frame))
        self._status = status

    def close(self) -> None:
        """Take the status line away, and show what was held back."""
        if self._status or self._held:
            self.write("")

    def end_line(self) -> None:
        """Let what comes next begin on a new line, and be what may be replaced."""
        self.close()
        if self._place.column:
            self.write("\n", rest="")
        self._place = Place()

    def _up_to_the_edge(self, before: Place, text: str, status: str) -> tuple[str, str, Place]:
        """Split off what is held back, if anything, and return where the rest ends.

        A terminal that has filled the last column waits for the next character before it goes on to
        the next row, and forgets to wait where the cursor moves. So that column stays empty until
        more comes.
        """
        after = advance(before, text, self._width)
        if not status or after.column < self._width:
            return text, "", after
        units = _UNIT.findall(text)
        held = ""
        while units and after.column >= self._width:
            held = units.pop() + held
            after = advance(before, "".join(units), self._width)
        return "".join(units), held, after

    def _encodable(self, frame: str) -> str:
        return frame if is_unicode(self.encoding) else frame.translate(_PLAIN_MARKS)
