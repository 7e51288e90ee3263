"""specli chat: on a pseudo-terminal as a person sees it, and fed by a pipe."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TypeAlias

import pexpect
import pytest

from tests.cli.conftest import Result
from tests.cli.forking import Forked, Forks

Specli = Callable[..., Result]
Terminals: TypeAlias = Callable[..., AbstractContextManager[Forked]]


# The prompt listens: it has drawn itself and turned the cursor on again.
PROMPT = r">[^\n]*\x1b\[\?12l\x1b\[\?25h"


@pytest.fixture
def terminal(forks: Forks, tiny: Path) -> Terminals:
    """Begin conversations on terminals."""

    @contextmanager
    def begin(*args: str, **more: str) -> Iterator[Forked]:
        command = ("chat", "-t", str(tiny / "target.gguf"), *args)
        environment = {"PROMPT_TOOLKIT_NO_CPR": "1", **more}
        with closing(forks.begin(*command, size=(300, 40), environment=environment)) as child:
            yield child

    return begin


def test_history_is_kept_for_the_user_alone(terminal: Terminals, tmp_path: Path) -> None:
    for line in ("first words", "\x1b[A"):  # the second time: the up arrow
        with terminal("-n", "3", XDG_STATE_HOME=str(tmp_path)) as child:
            child.expect(PROMPT)
            child.sendline(line)
            child.expect("3 tokens at")
            child.expect(PROMPT)
            child.sendeof()
            child.expect(pexpect.EOF)
            assert child.wait() == 0
    history = tmp_path / "specli" / "history"
    assert history.read_text().count("+first words") >= 1
    assert history.stat().st_mode & 0o077 == 0


def test_a_history_that_cannot_be_written_is_a_warning(terminal: Terminals, tmp_path: Path) -> None:
    (tmp_path / "specli").write_text("a file where a folder should be")
    with terminal("-n", "3", XDG_STATE_HOME=str(tmp_path)) as child:
        child.expect(r"(?s)warning: .*no\s+history\s+is\s+kept")
        child.expect(PROMPT)
        child.sendline("hello")
        child.expect("3 tokens at")


def test_the_models_control_characters_do_not_reach_the_terminal(terminal: Terminals) -> None:
    loose = ("--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--seed", "3")
    # no guesses: how many are made depends on the time, and so would what is drawn
    with terminal("-n", "400", "-d", "none", "--no-stats", *loose) as child:
        child.expect(PROMPT)
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
