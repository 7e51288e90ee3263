"""The standard streams: what is said on stderr, what is written to stdout, what happens at exit."""

import errno
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from specli.errors import SpecliError
from specli.text import terminal_safe


class ReaderGone(Exception):
    """Whoever read stdout has seen enough, as head does. (click would call it a failure.)"""


def say(kind: str, message: str) -> None:
    """Print one `kind: message` line on stderr."""
    tell(f"{kind}: {terminal_safe(' '.join(message.split()))}")


def tell(line: str, hang: int = 0) -> None:
    """Print a line on stderr. That nobody can read it is no reason to fail.

    hang: where what does not fit into the line goes on in the next ones.
    """
    with suppress(OSError, ValueError):
        # in one piece, as Ctrl-C may come between two
        print(f"{_set(line, sys.stderr, hang)}\n", end="", file=sys.stderr, flush=True)


def say_error(error: SpecliError) -> None:
    """Print what went wrong and, where there is one, the hint."""
    say("error", error.message)
    if error.hint:
        say("hint", error.hint)


def write(text: str) -> None:
    """Write text to stdout at once, as UTF-8, or as a terminal's own encoding can show it.

    Raises ReaderGone where nobody reads it any more, SpecliError where it cannot be written.
    """
    encoding = sys.stdout.encoding if sys.stdout.isatty() else "utf-8"
    try:
        sys.stdout.buffer.write(text.encode(encoding, "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        drop_stdout()
        raise SpecliError(f"stdout cannot be written: {why_not(error)}") from None


def file_or_stdout(path: Path | None) -> Path | None:
    """Return the file that output goes to; None for stdout, which - means."""
    return None if path == Path("-") else path


def why_not(error: Exception) -> str:
    """Return why a stream cannot be written."""
    if isinstance(error, OSError) and error.errno == errno.EBADF:
        return "it is closed"
    return getattr(error, "strerror", None) or str(error)


def write_lines(lines: Iterable[str], hang: int = 0) -> None:
    """Write lines of our own to stdout, harmless and set as those of `tell`. Raises as `write`."""
    write("".join(f"{_set(terminal_safe(line), sys.stdout, hang)}\n" for line in lines))


def _set(line: str, stream: TextIO, hang: int) -> str:
    """Return a line that a terminal breaks between words; for everybody else as it is."""
    if not stream.isatty() or not (width := _width(stream)):
        return line
    hang = hang if width - hang > _LEAST_WIDTH else 0
    if len(line.encode("utf-8", "replace")) < width:  # no character has more cells than bytes
        return line
    from rich.cells import cell_len

    said, colon, command = line.partition(_COMMAND)
    is_command = bool(colon) and " " in said  # what begins with one, behind a label, is in words
    if is_command:
        line = f"{said}:"
    lines = [line[:hang]]
    for word in re.findall(r"\s*\S+", line[hang:]):
        # a word that is longer than a line, as a path is, is left to the terminal to break
        if lines[-1].strip() and cell_len(lines[-1] + word) >= width:
            lines.append(" " * hang + word.lstrip())
        else:
            lines[-1] += word
    if is_command:
        lines.append(wrapped_command(_COMMAND[2:] + command, width - 1, 2))
    return "\n".join(lines)


def wrapped_command(command: str, width: int, indent: int) -> str:
    """Break a command between its words, as the shell that it is written for allows."""
    mark = " `" if command.startswith(("$env:", "& ")) else " \\"
    lines = [""]
    for word in re.findall(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""", command):
        joined = f"{lines[-1]} {word}".strip()
        if lines[-1] and len(joined) > width - indent - len(mark):
            lines.append(f"  {word}")
        else:
            lines[-1] = joined if len(lines) == 1 else f"  {joined}"
    return f"{mark}\n".join(" " * indent + line for line in lines)


def _width(stream: TextIO) -> int:
    """Return the columns of a terminal, 0 where it does not tell."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


_LEAST_WIDTH = 20  # of a column of text
_COMMAND = ": specli "  # before a command, to be taken over as it is, at the end of a line


def one_file() -> bool:
    """Say whether stdout and stderr end up in the same place, as with 2>&1."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except OSError:
        return False


def keep_streams() -> None:
    """Give the process the standard streams that its parent closed.

    What goes to stderr then goes nowhere; an answer that goes nowhere is an error, so stdout
    refuses what is written. No file that is opened later gets one of their numbers: what a library
    prints would end up in it.
    """
    ways = (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))
    for number, (name, way) in enumerate(ways):
        if getattr(sys, name) is not None:
            continue
        with suppress(OSError):
            file = os.open(os.devnull, way)
            if file != number:
                os.dup2(file, number)
                os.close(file)
        if name != "stdin":
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115


def drop_stdout() -> None:
    """Send the rest of stdout nowhere: its reader has gone, and exit must not complain of it."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
