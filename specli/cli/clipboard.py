"""The clipboard of whoever sits at the terminal, also over ssh."""

import base64
import sys

from specli.cli.terminals import is_dumb
from specli.errors import SpecliError, UsageError

# What xterm takes; some take more, none says whether it took it.
_MOST = 74_994


def copy(text: str) -> None:
    """Ask the terminal to copy a text (OSC 52). Raises SpecliError where there is none to ask."""
    if not sys.stderr.isatty() or is_dumb():
        raise UsageError("there is no terminal with a clipboard", "/save FILE writes a file")
    data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    if len(data) > _MOST:
        raise SpecliError(
            f"{len(text)} characters are more than terminals take", "/save FILE writes a file"
        )
    print(f"\x1b]52;c;{data}\x07", end="", file=sys.stderr, flush=True)
