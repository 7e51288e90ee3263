"""Write docs/terminal.svg: `specli chat` on a pseudo-terminal, drawn as it stands there."""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any

import pexpect
import pyte
from pyte.screens import Char
from rich.console import Console
from rich.style import Style
from rich.text import Text

PICTURE = Path(__file__).parent.parent / "docs" / "terminal.svg"
COLUMNS, ROWS = 80, 20
COMMAND = "specli chat --temp 0 -n 140"
FIRST = "Write a Python class Point with x and y, and methods to add and subtract."
SECOND = "Write that class again, for x, y and z."
N_ROWS = 9  # of the second answer in the picture
AT_MOST_S = 40.0


class _Screen(pyte.Screen):
    """A screen that answers where the program asks the terminal something."""

    reply: Callable[[str], Any]

    def write_process_input(self, data: str) -> None:
        self.reply(data)


def main() -> None:
    """Record and write."""
    with tempfile.TemporaryDirectory() as home:
        screen = record(Path(home))
    PICTURE.write_text(svg(screen), encoding="utf-8")
    print(PICTURE)


def record(home: Path) -> pyte.Screen:
    """Return the screen in the midst of the second answer: the status line goes at its end."""
    screen = _Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    size = (ROWS, COLUMNS)
    shell: pexpect.spawn[bytes] = pexpect.spawn("sh", dimensions=size, env=_environment(home))
    screen.reply = shell.send

    def wait(ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + AT_MOST_S
        while not ready():
            if time.monotonic() > deadline:
                sys.exit("error: the screen never came to be:\n" + "\n".join(screen.display))
            try:
                stream.feed(shell.read_nonblocking(1 << 16, timeout=1))
            except pexpect.TIMEOUT:
                continue

    def is_last(pattern: str) -> bool:
        rows = [row for row in screen.display if row.strip()]
        return bool(rows) and re.match(pattern, rows[-1]) is not None

    wait(lambda: is_last(r"\$"))
    shell.send(f"{COMMAND}\r")
    wait(lambda: is_last(">"))
    shell.send(f"{FIRST}\r")
    wait(lambda: is_last(">") and any("speculation o" in row for row in screen.display))
    shell.send(f"{SECOND}\r")
    wait(lambda: is_last(r"\d.* tok/s .* accepted") and _n_rows_below(screen, SECOND) >= N_ROWS)
    shell.close(force=True)
    return screen


def _environment(home: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    folders = {f"XDG_{kind}_HOME": str(home) for kind in ("CONFIG", "STATE", "CACHE", "DATA")}
    return os.environ | folders | {"PATH": path, "PS1": "$ ", "TERM": "xterm-256color"}


def _n_rows_below(screen: pyte.Screen, text: str) -> int:
    rows = [row.rstrip() for row in screen.display]
    at = next((y for y, row in enumerate(rows) if row.endswith(text)), len(rows))
    return sum(bool(row) for row in rows[at + 1 :])


def svg(screen: pyte.Screen) -> str:
    """Draw a screen. Nothing in the picture is loaded from anywhere."""
    console = Console(
        record=True, width=COLUMNS, file=StringIO(), color_system="truecolor", legacy_windows=False
    )
    for y in range(ROWS):
        row = Text(no_wrap=True)
        cells = [screen.buffer[y][x] for x in range(COLUMNS)]
        for style, run in groupby(cells, _style):
            row.append("".join(cell.data for cell in run), style)
        console.print(row)
    drawn = console.export_svg(title="specli chat", unique_id="terminal")
    drawn = re.sub(r"\s*(@font-face \{.*?\}|<!--.*?-->)", "", drawn, flags=re.DOTALL)
    return drawn.replace("Fira Code, ", "").replace("arial", "sans-serif")


def _style(char: Char) -> Style:
    return Style(
        color=_color(char.fg),
        bgcolor=_color(char.bg),
        bold=char.bold,
        italic=char.italics,
        underline=char.underscore,
        reverse=char.reverse,
    )


def _color(name: str) -> str | None:
    """Return rich's name of a colour of pyte, which calls yellow brown and knows hex digits."""
    if name == "default":
        return None
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    name = name.replace("brown", "yellow")
    return name.replace("bright", "bright_") if name.startswith("bright") else name


if __name__ == "__main__":
    main()
