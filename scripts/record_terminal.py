"""Write docs/terminal.svg: `specli chat` on a pseudo-terminal, drawn as it stands there."""

import os
import re
import sys
import tempfile
from io import StringIO
from pathlib import Path

import pexpect
import pyte
from pyte.screens import Char
from rich.console import Console
from rich.style import Style
from rich.text import Text

PICTURE = Path(__file__).parent.parent / "docs" / "terminal.svg"
COLUMNS, ROWS = 80, 20
COMMAND = "specli chat --temp 0 -n 160 --offline"
MESSAGE = "Write HTML for a list of five rivers."
SECOND = "The same as a table, please."
LIVE = re.compile(r"\d tok/s")  # the status line, which is gone when an answer is complete
AT_MOST_S = 120.0


def main() -> None:
    """Record and write."""
    with tempfile.TemporaryDirectory() as home:
        screen = record(Path(home))
    PICTURE.write_text(svg(screen), encoding="utf-8")
    print(PICTURE)


def record(home: Path) -> pyte.Screen:
    """Return the screen in the midst of the second answer, or at its end without a status line."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    shell = pexpect.spawn(
        "sh", dimensions=(ROWS, COLUMNS), env=_environment(home), timeout=AT_MOST_S
    )
    _feed_until(shell, stream, rb"\$ ")
    shell.sendline(COMMAND)
    _feed_until(shell, stream, rb"> ")
    shell.sendline(MESSAGE)
    _feed_until(shell, stream, rb"speculation o[nf].*> ")
    shell.sendline(SECOND)
    while True:
        _feed_until(shell, stream, rb"\n")
        if any(LIVE.search(row) for row in screen.display) and _n_rows_after(screen, SECOND) > 8:
            break
        if _n_rows_after(screen, "speculation o") == 0:
            break
    shell.close(force=True)
    return screen


def _environment(home: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    xdg = {f"XDG_{kind}_HOME": str(home) for kind in ("CONFIG", "STATE", "CACHE", "DATA")}
    return os.environ | xdg | {"PATH": path, "PS1": "$ ", "TERM": "xterm-256color"}
