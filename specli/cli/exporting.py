"""Where an exported conversation is written: whole, and over nothing but another."""

from pathlib import Path

from specli.conversations import MARK
from specli.errors import UsageError
from specli.files import check_place, read_text, unwritable, write_whole


def write_export(path: Path, text: str) -> None:
    """Write an exported conversation, over nothing but another. Raises SpecliError."""
    check_place(path)
    if path.exists() and MARK not in read_text(path)[:200]:
        raise UsageError(
            f"{path}: exists and is no conversation of specli, so it is not written over",
            "name another file, or remove this one",
        )
    try:
        write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise unwritable(path, error) from None
