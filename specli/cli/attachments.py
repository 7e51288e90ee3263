"""Text files that are added to a prompt."""

import re
from collections.abc import Sequence
from pathlib import Path

from specli.errors import UsageError
from specli.files import read_most


def attached(paths: Sequence[Path]) -> str:
    """Return files as fenced blocks with their names, "" for none.

    Raises UsageError where one cannot be read, or is no text.
    """
    return "\n\n".join(_block(path) for path in paths)


def _block(path: Path) -> str:
    if path.is_dir():
        raise UsageError(f"--file: {path} is a folder, a text file is wanted")
    try:
        data = read_most(path)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"--file: {path} cannot be read: {said}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UsageError(
            f"--file: {path} is no text in UTF-8",
            "convert it first, for example with iconv or pdftotext",
        )
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)  # nothing in the file closes it
    return f"{path}:\n{fence}\n{text.rstrip()}\n{fence}"
