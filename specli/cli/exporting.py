"""Where an exported conversation is written: whole, and over nothing but another."""

from collections.abc import Callable
from pathlib import Path

from specli.conversations import MARK, Conversation, as_json, as_markdown
from specli.errors import UsageError
from specli.files import check_place, read_text, unwritable, write_whole


def form_of(path: Path | None, form: str = "") -> Callable[[Conversation], str]:
    """Return what writes a conversation as the form, "json" or "md", or else as the path's end."""
    is_json = form == "json" or (not form and path is not None and path.suffix == ".json")
    return as_json if is_json else as_markdown


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
