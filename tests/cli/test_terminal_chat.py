"""Conversations and answers of the real program on a terminal."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.live import STATUS
from tests.cli.terminal import terminal
from tests.cli.test_terminal_keys import CTRL_C, CTRL_D, NOT_UTF_8, prompted

LONG = ("--temp", "1", "--top-k", "0", "--top-p", "1", "--min-p", "0")


def command(tiny: Path, name: str, *args: str) -> list[str]:
    return [sys.executable, "-m", "specli", name, *args, "-t", str(tiny / "target.gguf")]


def streams(rows: list[str]) -> bool:
    """Say whether an answer is coming: a status line ends what is on the screen."""
    return bool(STATUS.search(["", *filter(None, rows)][-1]))


def test_keys_in_mid_answer_are_not_shown_but_kept_and_echo_comes_back(tiny: Path) -> None:
    """With a shell around it, so that the terminal outlives the process."""
    line = " ".join(command(tiny, "chat", *LONG, "--ctx", "400"))
    with terminal(["sh", "-c", f"trap : INT; {line}; echo left with $?; read answer"]) as shown:
        shown.until(prompted)
        shown.send("hello\r")
        shown.until(streams)
        assert not shown.child.getecho()
        shown.send(CTRL_C)
        shown.until("interrupted")
        shown.until(prompted)
        shown.send("again\r")
        shown.until(streams)
        shown.send("/stats\r")
        for _ in range(5):
            shown.read(0.05)
            assert not any("/sta" in row for row in shown.screen.rows)
        shown.until("guessed by")  # the answer goes on to the end of the context
        shown.until(prompted)
        assert not any(STATUS.search(row) for row in shown.screen.rows)
        shown.send(CTRL_D)
        shown.until("left with 0")
        assert shown.child.getecho()


TWICE = """
import os, signal
from specli.cli.interrupt import Interrupt
with Interrupt(lambda: print("tidy", flush=True)).listening():
    os.kill(os.getpid(), signal.SIGINT)
    input("quiet")
    os.kill(os.getpid(), signal.SIGINT)
    print("never", flush=True)
"""


def test_a_second_ctrl_c_ends_at_once_and_leaves_a_terminal_that_echoes() -> None:
    root = Path(__file__).parents[2]
    script = f"PYTHONPATH={root} {sys.executable} -c '{TWICE}'; echo left with $?; read answer"
    with terminal(["sh", "-c", script]) as shown:
        shown.until("quiet")
        assert not shown.child.getecho()
        shown.send("secret\n")
        shown.until("left with 130")
        assert [row for row in shown.screen.rows if row] == ["quiettidy", "left with 130"]
        assert shown.child.getecho()


def test_there_is_no_status_line_where_there_cannot_be_one(tiny: Path) -> None:
    line = " ".join(command(tiny, "run", "hello", "-n", "40", "--temp", "0"))
    with (
        terminal(["sh", "-c", f"{line} 2>/dev/null"]) as without_stderr,
        terminal(["sh", "-c", f"TERM=dumb {line}"]) as dumb,
    ):
        for shown in (without_stderr, dumb):
            assert shown.end() == 0
            assert len(shown.output) > 40
            assert b"\x1b7" not in shown.output
        assert b"\x1b" not in dumb.output


def test_without_utf_8_and_colours_drafts_are_marked_and_nothing_crashes(tiny: Path) -> None:
    args = (*LONG, "-n", "200", "--seed", "1", "-k", "4", "-d", str(tiny / "draft.gguf"))
    environment = {**NOT_UTF_8, "NO_COLOR": "1"}
    run = command(tiny, "run", "hello", "--show-drafts", *args)
    with terminal(run, 80, 60, **environment) as shown:
        assert shown.end() == 0
        assert shown.screen.rows[0] == "guesses that were accepted, corrections"
        assert shown.output.isascii()
        assert b"tok/s | " in shown.output
        assert shown.output.count(b"\x1b[4m") > 1 < shown.output.count(b"\x1b[7m")
        assert not re.search(rb"\x1b\[[0-9;]*3\dm", shown.output)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux breaks lines anew, pyte does not")
def test_a_resize_leaves_no_debris_where_lines_are_broken_anew(tiny: Path, tmp_path: Path) -> None:
    def tmux(*args: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(tmp_path / "s"), "-f", "/dev/null", *args],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def until(seen: Callable[[str], object]) -> str:
        for _ in range(200):
            text = tmux("capture-pane", "-p", "-t", "x", "-S", "-")
            if seen(text):
                return text
            time.sleep(0.05)
        raise AssertionError(text)

    line = " ".join(["exec", *command(tiny, "chat", *LONG)])
    tmux("new-session", "-d", "-s", "x", "-x", "100", "-y", "20", line)
    try:
        until(lambda text: "\n>" in text)
        tmux("send-keys", "-t", "x", "hello", "Enter")
        for columns in ("45", "130", "60"):
            until(lambda text: len(STATUS.findall(text)) == 1)
            tmux("resize-window", "-t", "x", "-x", columns)
            until(lambda text: len(STATUS.findall(text)) == 1)
        tmux("send-keys", "-t", "x", "C-c")
        text = until(lambda text: "interrupted" in text.replace("\n", ""))
        assert not STATUS.search(text)
    finally:
        tmux("kill-server")
