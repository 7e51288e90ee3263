"""Where a page is written: whole or not at all, and over nothing but an older page."""

import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile

from specli.errors import SpecliError, UsageError

MADE_BY = '<meta name="generator" content="specli'
_HEAD = 1024  # bytes within which this stands


def check_place(path: Path) -> None:
    """Raise UsageError where a page must not be written, SpecliError where it cannot be."""
    if path.is_dir():
        raise UsageError(f"{path}: is a folder, a file is wanted", f"for example {path / 'a.html'}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")
    try:
        if path.exists() and not _is_page(path):
            raise UsageError(
                f"{path}: exists and is no page of specli, so it is not written over",
                "name another file, or remove this one",
            )
        with TemporaryFile(dir=path.resolve().parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from None


def write_page(path: Path, page: str) -> None:
    """Write a page, all at once. Raises SpecliError."""
    place = path.resolve()  # what a link leads to is replaced, not the link
    partial = place.with_name(f"{place.name}.{os.getpid()}.partial")
    try:
        try:
            partial.write_text(page, encoding="utf-8", newline="\n")
            partial.replace(place)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def free_name(stem: str) -> Path:
    """Return STEM.html in the current folder, or the first of STEM-2.html, ... that is free."""
    return next(path for path in _names(stem) if not os.path.lexists(path))


def _names(stem: str) -> Iterator[Path]:
    yield Path(f"{stem}.html")
    for number in count(2):
        yield Path(f"{stem}-{number}.html")


def _is_page(path: Path) -> bool:
    """Say whether a file is a page of specli, or empty."""
    if not stat.S_ISREG(path.stat().st_mode):
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return not head or MADE_BY.encode() in head


def _unwritable(path: Path, error: OSError) -> SpecliError:
    return SpecliError(f"{path}: cannot be written: {error.strerror or error}")
