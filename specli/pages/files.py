"""Where a page is written: whole or not at all, and over nothing but an older page."""

import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from specli.errors import UsageError
from specli.files import check_place, unwritable, write_whole

MADE_BY = '<meta name="generator" content="specli'
_HEAD = 1024  # bytes within which this stands


def check_page(path: Path) -> None:
    """Raise UsageError where a page must not be written, SpecliError where it cannot be."""
    check_place(path)
    try:
        if path.exists() and not _is_page(path):
            raise UsageError(
                f"{path}: exists and is no page of specli, so it is not written over",
                "name another file, or remove this one",
            )
    except OSError as error:
        raise unwritable(path, error) from None


def write_page(path: Path, page: str) -> None:
    """Write a page, all at once. Raises SpecliError."""
    try:
        write_whole(path, page.encode("utf-8", "replace"))
    except OSError as error:
        raise unwritable(path, error) from None


def free_name(stem: str) -> Path:
    """Return STEM.html in the current folder, or the first of STEM-2.html, ... that is free."""
    return next(path for path in _names(stem) if not os.path.lexists(path))


def write_free(stem: str, page: str) -> Path:
    """Write a page under the name that is free now, which no other process gets. As write_page."""
    path = next(filter(_is_made, _names(stem)))
    try:
        write_page(path, page)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _names(stem: str) -> Iterator[Path]:
    yield Path(f"{stem}.html")
    for number in count(2):
        yield Path(f"{stem}-{number}.html")


def _is_made(path: Path) -> bool:
    """Make an empty file, if there is nothing of this name; say whether that was so."""
    try:
        path.open("x").close()
    except FileExistsError:
        return False
    except OSError as error:
        raise unwritable(path, error) from None
    return True


def _is_page(path: Path) -> bool:
    """Say whether a file is a page of specli, or empty."""
    if not stat.S_ISREG(path.stat().st_mode):
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return not head or MADE_BY.encode() in head
