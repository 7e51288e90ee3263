"""A terminal to look at: pyte draws what is written, strictly where terminals differ."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import TypeAlias

import pexpect
import pyte
from pyte.modes import DECAWM
from wcwidth import wcwidth

from tests.cli.forking import SPECLI, Forked, Forks

# A text, or a function of the rows of a screen.
Seen: TypeAlias = str | Callable[[list[str]], bool]


class Strict(pyte.Screen):
    """A screen that, as xterm does, forgets a pending wrap when the cursor moves."""

    def __init__(self, columns: int, lines: int) -> None:
        self.past: list[str] = []  # rows that have scrolled away
        super().__init__(columns, lines)

    def _settle(self) -> None:
        self.cursor.x = min(self.cursor.x, self.columns - 1)

    def index(self) -> None:
        self._settle()
        if self.cursor.y == self.lines - 1:
            self.past.append(self._row(0))
        super().index()

    def reverse_index(self) -> None:
        self._settle()
        super().reverse_index()

    def cursor_up(self, count: int | None = None) -> None:
        self._settle()
        super().cursor_up(count)

    def erase_in_display(self, how: int = 0, *args: int, **more: bool) -> None:
        self._settle()
        super().erase_in_display(how, *args, **more)

    def draw(self, data: str) -> None:
        for character in data:
            at_edge = self.cursor.x == self.columns - 1 and DECAWM in self.mode
            if at_edge and wcwidth(character) == 2:
                self.cursor.x = self.columns  # a wide character that does not fit goes on below
            super().draw(character)

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Cut, as xterm does: rows below the cursor go first, then those at the top."""
        n_gone = max(0, self.cursor.y + 1 - (lines or self.lines))
        self.past += [self._row(y) for y in range(n_gone)]
        rows = [self.buffer[y + n_gone] for y in range(lines or self.lines)]
        y = self.cursor.y - n_gone
        super().resize(lines, columns)
        self.buffer.clear()
        self.buffer.update(enumerate(rows))
        self.cursor.y = y
        self._settle()

    def _row(self, y: int) -> str:
        line = self.buffer[y]
        return "".join(line[x].data for x in range(max(line, default=-1) + 1)).rstrip()

    @property
    def rows(self) -> list[str]:
        """What is on the screen, without blanks at the ends of rows."""
        return [self._row(y) for y in range(self.lines)]


class Terminal:
    """A process on a pseudo-terminal, and what is to be seen there."""

    def __init__(self, child: "pexpect.spawn[bytes] | Forked", columns: int, lines: int) -> None:
        self.screen = Strict(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.output = b""
        self.child = child
        vars(self.screen)["write_process_input"] = child.send  # answers to questions

    def send(self, keys: str) -> None:
        self.child.send(keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        self.read()
        self.screen.resize(lines, columns)
        self.child.setwinsize(lines, columns)

    def read(self, timeout: float = 0.0) -> bool:
        """Draw what has been written; say whether there can be more."""
        try:
            data = self.child.read_nonblocking(65536, timeout)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.output += data
        self._stream.feed(data)
        return True

    def until(self, seen: Seen) -> None:
        """Wait until a text, or what a function looks for, is on the screen."""
        end = time.monotonic() + 20
        while True:
            is_open = self.read(0.05)
            rows = self.screen.rows
            if seen(rows) if callable(seen) else any(seen in row for row in rows):
                return
            assert is_open, f"it ended, and {seen!r} is not on its screen:\n" + "\n".join(rows)
            assert time.monotonic() < end, f"{seen!r} is not on the screen:\n" + "\n".join(rows)

    def end(self) -> int:
        """Wait for the end; return the exit code."""
        while self.read(0.1):
            pass
        self.child.wait()
        return int(self.child.exitstatus or 0)


@contextmanager
def terminal(
    command: list[str], columns: int = 80, lines: int = 24, /, **environment: str
) -> Iterator[Terminal]:
    """Run a command on a terminal."""
    child: pexpect.spawn[bytes] = pexpect.spawn(
        command[0],
        command[1:],
        env={**os.environ, "TERM": "xterm-256color", **environment},
        dimensions=(lines, columns),
    )
    child.delaybeforesend = None
    try:
        yield Terminal(child, columns, lines)
    finally:
        child.close(force=True)


@contextmanager
def forked(
    forks: Forks,
    *args: str,
    size: tuple[int, int] = (80, 24),
    code: str = SPECLI,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Terminal]:
    """Run specli, or other code, on a terminal, in a process that begins quickly."""
    child = forks.begin(*args, size=size, code=code, environment=environment, encoding=None)
    with closing(child):
        yield Terminal(child, *size)


def prompted(rows: list[str]) -> bool:
    """Say whether the prompt waits: it stands on the last row that has something on it."""
    return [row for row in rows if row][-1:] == [">"]
