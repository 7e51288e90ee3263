"""Files are written whole or not at all."""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from specli.errors import SpecliError, UsageError


def write_whole(path: Path, *parts: bytes | memoryview, private: bool = False) -> None:
    """Write a file, all at once; what a link leads to is replaced, not the link. Raises OSError.

    parts: one behind the other. private: for nobody else to read.
    """
    place = path.resolve()
    if place.exists() and not place.is_file():  # root could put a file in place of a device
        raise OSError(errno.EINVAL, "is no regular file")
    partial = partial_of(place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(partial, flags, 0o600 if private else 0o666), "wb") as file:
            for part in parts:
                file.write(part)
        partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)


def partial_of(place: Path) -> Path:
    """Return where a file is written before it is moved to its place."""
    # a name as long as names can be leaves no room for the rest
    return place.with_name(f"{place.name[:50]}.{os.getpid()}.partial")


def open_regular(path: Path) -> BinaryIO:
    """Open a file to be read. A pipe or a device, on which one might wait, is an OSError."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.open(path, flags)
    try:
        check_regular(file)
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


def check_regular(file: int) -> None:
    """Raise OSError where an open file is none that lies on a disk."""
    mode = os.fstat(file).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is no regular file")


MOST_BYTES = 50_000_000  # of a text that is read whole: more fits into no context


def read_most(path: Path) -> bytes:
    """Read a file that may have no end. Raises UsageError where it is too large, OSError."""
    with path.open("rb") as file:
        return read_stream(file, f"{path}:")


def read_stream(file: BinaryIO, called: str) -> bytes:
    """Read what may have no end. called: what the user calls it. As read_most."""
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UsageError(f"{called} is larger than {MOST_BYTES // 1_000_000} MB")
    return data


def read_text(path: Path, called: str = "", *, pipes: bool = False) -> str:
    """Read a file of text, a byte order mark left out.

    called: what the user calls it. pipes: it may be one, as of <(COMMAND), which is waited for.
    Raises UsageError where it is no UTF-8, too large, or cannot be read.
    """
    called = called or f"{path}:"
    try:
        if not pipes and path.exists() and not path.is_file():
            raise UsageError(f"{called} is no file of text")
        return read_most(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        hint = "convert it first, for example with iconv or pdftotext"
        raise UsageError(f"{called} is not text in UTF-8", hint) from None
    except IsADirectoryError:
        raise UsageError(f"{called} is a folder, a text file is wanted") from None
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{called} cannot be read: {said or error}") from None


def check_place(path: Path) -> None:
    """Raise UsageError where no file can be meant, SpecliError where none can be written."""
    if path == Path("-"):  # stdout, elsewhere
        raise UsageError("-: stdout is no file, a file is wanted")
    try:
        if path.is_dir():
            example = path / f"a{path.suffix}"
            raise UsageError(f"{path}: is a folder, a file is wanted", f"for example {example}")
        if path.exists() and not path.is_file():
            raise UsageError(f"{path}: is no regular file")
        if not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}")
        with TemporaryFile(dir=path.resolve().parent):
            pass
    except RuntimeError:  # so Python 3.11 and 3.12 name it
        raise SpecliError(f"{path}: cannot be written: its links lead in a circle") from None
    except OSError as error:  # of any of these questions, as for a name that is too long
        raise unwritable(path, error) from None


@contextmanager
def changing(folder: Path) -> Iterator[None]:
    """Make a folder where there is none, and wait until nobody else changes what is in it.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":  # where folders cannot be opened
        yield
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        lock(file, waits=True)
        yield
    finally:
        os.close(file)


def lock(file: int, *, waits: bool = False) -> bool:
    """Say whether nobody else has the file; from then on nobody else gets it, until it is closed.

    waits: until nobody has it. Where files cannot be locked, nobody has it.
    """
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        except OSError:
            return True
    return True


def unwritable(path: Path, error: OSError) -> SpecliError:
    """Return what is said of a file that cannot be written."""
    return SpecliError(f"{path}: cannot be written: {error.strerror or error}")
