"""The standard streams: what is said on stderr, what is written to stdout, what happens at exit."""

import os
import sys
from contextlib import suppress

from specli.errors import SpecliError
from specli.text import terminal_safe


class ReaderGone(Exception):
    """Whoever read stdout has seen enough, as head does. (click would call it a failure.)"""


def say(kind: str, message: str) -> None:
    """Print one `kind: message` line on stderr."""
    tell(f"{kind}: {terminal_safe(' '.join(message.split()))}")


def tell(line: str) -> None:
    """Print a line on stderr. That nobody can read it is no reason to fail."""
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


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
        raise SpecliError(f"stdout cannot be written: {error.strerror or error}") from None


def one_file() -> bool:
    """Say whether stdout and stderr end up in the same place, as with 2>&1."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except OSError:
        return False


def keep_streams() -> None:
    """Give the process the standard streams that its parent closed, leading nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115


def drop_stdout() -> None:
    """Send the rest of stdout nowhere: its reader has gone, and exit must not complain of it."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
