"""Text files that are added to a prompt."""

import re
from collections.abc import Sequence
from pathlib import Path

from specli.errors import UsageError
from specli.files import read_text


def read_attached(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return files with what they hold. Raises UsageError where one is not to be read as text."""
    return [(path, _text(path)) for path in paths]


def fenced(path: Path, text: str) -> str:
    """Return a file as a fenced block with its name."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)  # nothing in the file closes it
    return f"{path}:\n{fence}\n{text.rstrip()}\n{fence}"


def _text(path: Path) -> str:
    text = read_text(path, f"--file: {path}", pipes=True)
    if "\0" in text:
        raise UsageError(f"--file: {path} is no text: it holds a zero byte")
    return text
