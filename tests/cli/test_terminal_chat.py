"""Conversations and answers of the real program on a terminal."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.forking import NOT_UTF_8, SPECLI, Forks
from tests.cli.live import STATUS
from tests.cli.terminal import Terminal, forked, prompted, terminal

LONG = ("--temp", "1", "--top-k", "0", "--top-p", "1", "--min-p", "0")


def command(tiny: Path, name: str, *args: str) -> list[str]:
    return [sys.executable, "-m", "specli", name, *args, "-t", str(tiny / "target.gguf")]


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


WITHOUT_STDERR = f"import os; os.dup2(os.open(os.devnull, os.O_WRONLY), 2); {SPECLI}"


@pytest.mark.parametrize(
    ("term", "code", "forbidden"),
    [
        pytest.param("dumb", SPECLI, b"\x1b", id="dumb"),
        pytest.param("unknown", SPECLI, b"\x1b", id="unknown"),
        pytest.param("xterm", WITHOUT_STDERR, b"\x1b7", id="without stderr"),
    ],
)
def test_there_is_no_status_line_where_there_cannot_be_one(
    forks: Forks, tiny: Path, term: str, code: str, forbidden: bytes
) -> None:
    args = ("run", "hello", "-n", "40", "--temp", "0", "-t", str(tiny / "target.gguf"))
    with forked(forks, *args, code=code, environment={"TERM": term}) as shown:
        assert shown.end() == 0
        assert len(shown.output) > 40
        assert forbidden not in shown.output
        assert shown.screen.rows[0]  # a bar that was not there leaves no line


LOADING = """
from specli.cli.waiting import Waiting
waiting = Waiting()
waiting.show("a-model-with-a-long-name-70b-q4_k_m.gguf", 0.5)
waiting.close()
"""
FETCHING = """
from specli.cli.downloads import Downloads
from specli.models.download import Progress
with Downloads() as downloads:
    downloads.show(Progress("a-model-with-a-long-name-70b-q4_k_m.gguf", 10**9, 2 * 10**9, 0, 1))
"""


@pytest.mark.parametrize(
    ("code", "left"),
    [(LOADING, ""), (FETCHING, "fetching:a-model-with-a-long-name-70b-q4_k_m.gguf(2.0GB)")],
    ids=["loading", "fetching"],
)
def test_a_bar_without_utf_8_is_ascii_and_goes_away(forks: Forks, code: str, left: str) -> None:
    with forked(forks, code=code, size=(40, 9), environment=NOT_UTF_8) as shown:
        assert shown.end() == 0
        assert re.search(rb"\x1b\[2K[^\r]*a-model-", shown.output)
        assert shown.output.isascii()
        assert b"\\u" not in shown.output
        assert "".join(shown.screen.rows).replace(" ", "") == left


def test_without_utf_8_and_colours_drafts_are_marked_and_nothing_crashes(
    tiny: Path, forks: Forks
) -> None:
    args = (*LONG, "-n", "200", "--seed", "1", "-k", "4", "-d", str(tiny / "draft.gguf"))
    environment = {**NOT_UTF_8, "NO_COLOR": "1"}
    run = ("run", "hello", "--show-drafts", "-t", str(tiny / "target.gguf"), *args)
    with forked(forks, *run, size=(80, 60), environment=environment) as shown:
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

    args = (*LONG, "-d", "none", "--seed", "1", "-c", "4000")  # an answer that goes on
    line = " ".join(["exec", *command(tiny, "chat", *args)])
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("where", ["answer", "prompt"])
def test_a_signal_leaves_the_terminal_as_it_was(
    forks: Forks, tiny: Path, where: str, number: signal.Signals
) -> None:
    args = ("-t", str(tiny / "target.gguf"), "-d", "none", *LONG, "-c", "4000", "--seed", "1")
    command = ("run", "hello") if where == "answer" else ("chat",)
    with closing(forks.begin(*command, *args, encoding=None)) as child:
        shown = Terminal(child, 80, 24)
        before = child.modes()
        shown.until(answering if where == "answer" else prompted)
        assert child.modes() != before
        child.kill(number)
        assert shown.end() == -number
        assert child.modes() == before
        assert shown.output.count(b"\x1b[?2004l") >= shown.output.count(b"\x1b[?2004h")
        assert not answering(shown.screen.rows)


def answering(rows: list[str]) -> bool:
    """Say whether there is a status line."""
    return any(map(STATUS.search, rows))


def test_ctrl_z_at_the_prompt_suspends(tiny: Path) -> None:
    line = " ".join(command(tiny, "chat", "-d", "none", "-n", "3"))
    with terminal(["bash", "--norc", "-i"], PS1="shell ", HISTFILE="") as shown:
        shown.until("shell")
        shown.send(f"{line}\r")
        shown.until(prompted)
        shown.send("\x1a")
        shown.until("Stopped")
        shown.send("fg\r")
        shown.until(prompted)
        shown.send("\x04")
        shown.until(lambda rows: [row for row in rows if row][-1] == "shell")


ESCAPES = "\\x1b]0;owned\\x07\\u009b31m"


@pytest.mark.parametrize(
    "args",
    [["chats", "show", "ab12"], ["chats", "export", "ab12"], ["run", "--batch", "one.jsonl"]],
)
def test_no_way_to_show_an_answer_lets_escapes_through(
    forks: Forks, tiny: Path, tmp_path: Path, args: list[str]
) -> None:
    home = {f"XDG_{kind}_HOME": str(tmp_path) for kind in ("DATA", "CACHE", "STATE", "CONFIG")}
    kept = tmp_path / "specli" / "conversations" / "ab12.jsonl"
    kept.parent.mkdir(parents=True)
    text = ESCAPES.encode().decode("unicode_escape")
    lines = (
        {"type": "conversation", "schema": 1, "id": "ab12", "target": "demo"},
        {"type": "user", "text": text},
        {"type": "text", "text": text},
        {"type": "done", "reason": "eog"},
    )
    kept.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "one.jsonl").write_text('{"prompt": "hello"}\n')
    if args[0] == "run":
        model = str(tiny / "target.gguf")
        args = [*args, "-t", model, "-d", "none", "--grammar", f'root ::= "{ESCAPES}"']
    with closing(forks.begin(*args, folder=tmp_path, environment=home, encoding=None)) as child:
        shown = Terminal(child, 80, 24)
        assert shown.end() == 0, shown.screen.rows
    assert b"owned" in shown.output
    assert not re.search(rb"\x1b\]|\x07|\xc2\x9b", shown.output)
