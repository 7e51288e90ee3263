"""Text files that are added to a prompt."""

import re
from collections.abc import Sequence
from pathlib import Path

from specli.errors import UsageError
from specli.files import read_text


def attached(paths: Sequence[Path]) -> str:
    """Return files as fenced blocks with their names, "" for none.

    Raises UsageError where one cannot be read, or is no text.
    """
    return "\n\n".join(_block(path) for path in paths)


def _block(path: Path) -> str:
    text = read_text(path, f"--file: {path}", pipes=True)
    if "\0" in text:
        raise UsageError(f"--file: {path} is no text: it holds a zero byte")
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)  # nothing in the file closes it
    return f"{path}:\n{fence}\n{text.rstrip()}\n{fence}"
