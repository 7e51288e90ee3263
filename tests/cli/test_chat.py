"""specli chat: on a pseudo-terminal as a person sees it, and fed by a pipe."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect

from tests.cli.conftest import Result

Specli = Callable[..., Result]


def prompt(child: "pexpect.spawn[str]") -> None:
    """Wait until the prompt listens: it has drawn itself and turned the cursor on again."""
    child.expect(r">[^\n]*\x1b\[\?12l\x1b\[\?25h")


@contextmanager
def terminal(tiny: Path, *args: str, **environment: str) -> Iterator["pexpect.spawn[str]"]:
    command = ["-m", "specli", "chat", "-t", str(tiny / "target.gguf"), *args]
    child = pexpect.spawn(
        sys.executable,
        command,
        env={**os.environ, "PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm", **environment},
        encoding="utf-8",
        timeout=20,
        dimensions=(40, 300),
    )
    child.linesep = "\r"  # what the Enter key sends
    try:
        prompt(child)
        yield child
    finally:
        child.close(force=True)


def test_a_conversation_on_a_terminal(tiny: Path) -> None:
    with terminal(tiny, "--temp", "0", "-n", "10") as child:
        child.sendline("hello")
        child.expect(r"10 tokens at .*prompt \d+ new \+ 0 cached")
        child.sendline("again")
        child.expect(r"10 tokens at .*prompt \d+ new \+ [1-9]\d* cached")
        child.sendline("/stats")
        child.expect("guessed by")
        child.sendline("/help")
        child.expect("/system")
        child.sendline("/system Be brief.")
        child.expect("system: Be brief.")
        child.sendline("/reset")
        child.sendline("/frob")
        child.expect("error: no command is called /frob")
        child.sendline("/exit")
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 0


def test_ctrl_c_stops_the_answer_and_then_leaves(tiny: Path) -> None:
    with terminal(tiny, "--temp", "1", "--ctx", "0") as child:
        child.sendline("hello")
        child.expect(r"2004l")  # the prompt is done
        child.expect(r"(?s).{200}")  # the answer is coming
        child.sendintr()
        child.expect(r"tokens at .*cached")
        child.sendline("/stats")
        child.expect("guessed by")
        prompt(child)
        child.sendintr()
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 130
        assert "Traceback" not in (child.before or "")


def test_ctrl_d_leaves(tiny: Path) -> None:
    with terminal(tiny) as child:
        child.sendeof()
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 0


def test_history_is_kept_for_the_user_alone(tiny: Path, tmp_path: Path) -> None:
    for line in ("first words", "\x1b[A"):  # the second time: the up arrow
        with terminal(tiny, "-n", "3", XDG_STATE_HOME=str(tmp_path)) as child:
            child.sendline(line)
            child.expect("3 tokens at")
            prompt(child)
            child.sendeof()
            child.expect(pexpect.EOF)
    history = tmp_path / "specli" / "history"
    assert history.read_text().count("+first words") >= 1
    assert history.stat().st_mode & 0o077 == 0


def test_a_history_that_cannot_be_written_is_a_warning(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "specli").write_text("a file where a folder should be")
    command = ["-m", "specli", "chat", "-t", str(tiny / "target.gguf"), "-n", "3"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm"}
    child = pexpect.spawn(sys.executable, command, env=environment, encoding="utf-8", timeout=20)
    child.linesep = "\r"
    child.expect(r"warning:.*no\s+history\s+is\s+kept")
    child.sendline("hello")
    child.expect("3 tokens at")
    child.close(force=True)


def test_the_models_control_characters_do_not_reach_the_terminal(tiny: Path) -> None:
    loose = ("--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--seed", "1")
    with terminal(tiny, "-n", "400", "--no-stats", *loose) as child:
        child.sendline("hello")
        child.sendline("/stats")
        child.expect("guessed by")
        shown = child.before or ""
    answer = shown.split("hello", 1)[1]
    assert any("\u2400" <= c <= "\u241f" for c in answer)  # they were there, and are pictures now
    assert "\x07" not in answer
    assert "\x00" not in answer


def test_lines_of_a_pipe_are_the_turns(specli: Specli, tiny: Path) -> None:
    args = ("-t", tiny / "target.gguf", "--temp", 0, "-n", 8, "--json")
    done = specli("chat", *args, stdin=b"hello\n\nagain\n/exit\nnever\n")
    assert done.code == 0
    ends = [event for event in map(json.loads, done.out.splitlines()) if event["type"] == "done"]
    assert len(ends) == 2
    assert ends[0]["stats"]["cache_n"] == 0
    assert ends[1]["stats"]["cache_n"] > 0


def test_an_error_in_a_turn_keeps_the_conversation(specli: Specli, tiny: Path) -> None:
    args = ("-t", tiny / "target.gguf", "--temp", 0, "-n", 4, "--ctx", 100)
    done = specli("chat", *args, stdin=b"hello\n" + b"far too long " * 50 + b"\nagain\n")
    assert done.code == 2  # that of the last error, for scripts
    assert "error: that makes " in done.err
    assert done.err.count("4 tokens at") == 2


def test_a_conversation_that_fills_the_context_says_so(specli: Specli, tiny: Path) -> None:
    args = ("-t", tiny / "target.gguf", "--temp", 0, "--ctx", 80)
    done = specli("chat", *args, stdin=b"hello\n/reset\nhello\n")
    assert done.err.count("warning: the context is full") == 2
    assert done.code == 0


def test_bad_input_of_chat(specli: Specli, tiny: Path) -> None:
    assert specli("chat", "-t", tiny / "target.gguf", stdin=b"\xff").code == 2
    assert specli("chat", "-t", tiny / "target.gguf").code == 0  # nothing said, nothing answered
