"""Lines of our own: a terminal breaks them between words, a pipe has them as they are."""

import os
import pty
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from wcwidth import wcswidth

from specli.cli.streams import say, tell, write_lines

END = "\x00"
LONG = "the context is full; /reset forgets the conversation, --overflow drop the oldest turns"


def shown(monkeypatch: pytest.MonkeyPatch, speak: Callable[[], None]) -> list[str]:
    """Return the lines that come of it on a terminal of 40 columns."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 40))
    try:
        with os.fdopen(theirs, "w", encoding="utf-8") as stream, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stream)
            patched.setattr(sys, "stderr", stream)
            speak()
            print(END, end="", file=stream, flush=True)
            found = b""
            while not found.endswith(END.encode()):
                found += os.read(ours, 65536)
            return found[: -len(END)].decode().splitlines()
    finally:
        os.close(ours)


def test_no_word_breaks_at_the_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(monkeypatch, lambda: say("hint", LONG))
    assert len(found) == 3
    assert " ".join(found) == f"hint: {LONG}"
    assert max(map(len, found)) < 40


def test_only_what_is_longer_than_a_line_breaks_within(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/home/user/models/" + 30 * "x"
    line = f"it lies at {path[:34]} and at {path}"
    first, second, *rest = shown(monkeypatch, lambda: tell(line))
    assert (first, second) == ("it lies at", f"{path[:34]} and")
    assert path in "".join(rest)


def test_a_path_is_not_broken_and_a_command_is_what_a_shell_takes_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = "/home/user/models/" + 30 * "x"
    found = shown(monkeypatch, lambda: say("records", path))
    assert "".join(found) == f"records:{path}"
    line = f"in fewer bits it may guess faster: specli derive --bits 4 {path}"
    for speak in (lambda: say("hint", line), lambda: write_lines([f"hint: {line}"])):
        found = shown(monkeypatch, speak)
        assert found[:2] == ["hint: in fewer bits it may guess", "faster:"]
        assert found[2:] == ["  specli derive --bits 4 \\", f"    {path}"]


def test_a_hint_that_begins_with_a_command_goes_on_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = "specli models list shows the names. A file is named by its path"
    found = shown(monkeypatch, lambda: say("hint", line))
    assert " ".join(found) == f"hint: {line}"


def test_wide_characters_take_two_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    words = " ".join(["文字", "列の", "中の"] * 6)
    found = shown(monkeypatch, lambda: tell(words))
    assert " ".join(found) == words
    assert max(map(wcswidth, found)) < 40


def test_what_hangs_goes_on_in_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    def speak() -> None:
        tell(f"{'/name':<10}{LONG[:60]}", 10)
        write_lines(["a  b", f"{'key':<10}{LONG[:60]}"], hang=10)

    found = shown(monkeypatch, speak)
    assert found[0] == "/name     the context is full; /reset"
    assert found[1] == "          forgets the conversation,"
    assert "a  b" in found
    assert found[-1].startswith(" " * 10)


def test_a_pipe_has_them_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "said").open("w+") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        say("hint", LONG)
        tell(f"{'/name':<10}{LONG}", 10)
        monkeypatch.undo()
        stream.seek(0)
        assert stream.read() == f"hint: {LONG}\n/name     {LONG}\n"
