"""Conversations are kept, resumed, exported and removed: what a user sees of it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specli.conversation_files import conversations_folder, reopen, saved
from specli.conversations import parse
from specli.kv_state import state_file
from tests.cli.conftest import Result

Specli = Callable[..., Result]
Chat = Callable[..., Result]


@pytest.fixture
def chat(specli: Specli, tiny: Path) -> Chat:
    """Hold a conversation of some lines, with the tiny target and without speculation."""

    def call(*args: object, lines: str = "") -> Result:
        fixed = ("-n", 6, "-d", "none", "--threads", 1, "--temp", 0, "--json")
        return specli("chat", *fixed, *args, stdin=lines.encode())

    return call


@pytest.fixture
def target(tiny: Path) -> tuple[str, str]:
    return "-t", str(tiny / "target.gguf")


def ends(result: Result) -> list[dict[str, Any]]:
    events = map(json.loads, result.out.splitlines())
    return [event["stats"] for event in events if event["type"] == "done"]


def answers(result: Result) -> list[str]:
    found = [""]
    for event in map(json.loads, result.out.splitlines()):
        found[-1] += event.get("text", "")
        found += [""] if event["type"] == "done" else []
    return found[:-1]


def the_only_one() -> str:
    (path,) = saved()
    return path.stem


def test_a_pipe_keeps_nothing_unless_told(chat: Chat, target: tuple[str, str]) -> None:
    assert chat(*target, lines="hello\n").code == 0
    assert not conversations_folder().exists()
    assert chat(*target, "--save", lines="/help\n").code == 0
    assert not conversations_folder().exists()  # nothing was said
    assert chat(*target, "--save", lines="hello\n").code == 0
    assert len(saved()) == 1


def test_resumed_it_evaluates_what_is_new_only(chat: Chat, target: tuple[str, str]) -> None:
    args = (*target, "--system", "Be brief.", "--ctx", 512)
    at_once = chat(*args, lines="hello\nmore\nthird\n")
    chat(*args, "--save", lines="hello\nmore\n")
    name = the_only_one()
    assert state_file(name).exists()
    told = chat("--continue", lines="third\n")
    assert told.code == 0
    (stats,) = ends(told)
    assert stats["prompt_n"] < stats["cache_n"]
    for key in ("prompt_n", "cache_n"):  # as if it had never been left
        assert stats[key] == ends(at_once)[2][key]
    assert answers(told) == answers(at_once)[2:]
    assert f"resumed: {name} of" in told.err
    assert "target.gguf with none, system: Be brief." in told.err
    assert "> hello\n" in told.err
    start = json.loads(told.out.splitlines()[0])
    assert start["settings"]["n_ctx"] == 512  # as it was begun
    assert [turn.user for turn in parse(saved()[0].read_bytes(), "x").turns] == [
        *("hello", "more", "third")
    ]
    flags = chat("--resume", name[:3], "--system", "Be long.", "--no-save", lines="fourth\n")
    assert "system: Be long." in flags.err
    assert ends(flags)[0]["cache_n"] < 20  # another system message comes first
    assert len(parse(saved()[0].read_bytes(), "x").turns) == 3


@pytest.mark.parametrize("how", ["damaged", "other context", "removed"])
def test_a_state_that_does_not_fit_is_ignored(
    chat: Chat, target: tuple[str, str], how: str
) -> None:
    chat(*target, "--save", lines="hello\nmore\n")
    file = state_file(the_only_one())
    if how == "damaged":
        data = file.read_bytes()
        file.write_bytes(data[:-5] + b"\0\1\2\3\4")
    elif how == "removed":
        file.unlink()
    told = chat("--continue", *(["--ctx", 1024] if how == "other context" else []), lines="third\n")
    (stats,) = ends(told)
    assert stats["cache_n"] == 0
    assert stats["prompt_n"] > 50
    assert "state" not in told.err
    assert told.code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
def test_kill_9_in_mid_answer_loses_no_turn(chat: Chat, target: tuple[str, str]) -> None:
    """And another chat at the same time does not notice."""
    chat(*target, "--save", lines="hello\nmore\n")
    (path,) = saved()
    command = [sys.executable, "-m", "specli", "chat", "-d", "none", "--temp", "1", "--ctx", "0"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with (
        subprocess.Popen([*command, "--continue"], **pipes) as killed,  # type: ignore[call-overload]
        subprocess.Popen([*command, "--save", *target, "-n", "9"], **pipes) as other,  # type: ignore[call-overload]
    ):
        killed.stdin.write(b"third\n")
        killed.stdin.flush()
        killed.stdout.read(50)
        os.kill(killed.pid, signal.SIGKILL)
        other.communicate(b"one\ntwo\n")
    assert other.returncode == 0
    whole = parse(path.read_bytes(), "x")
    assert [turn.user for turn in whole.turns] == ["hello", "more", "third"]
    assert [turn.reason for turn in whole.turns] == ["length", "length", ""]
    partial = whole.turns[-1].answer
    assert partial
    told = chat("--resume", path.stem, "--ctx", 0, lines="fourth\n")
    assert "(interrupted)" in told.err
    turns = parse(path.read_bytes(), "x").turns
    assert [turn.user for turn in turns] == ["hello", "more", "third", "fourth"]
    assert (turns[2].answer, turns[3].reason) == (partial, "length")
    (beside,) = (parse(one.read_bytes(), "x").turns for one in saved() if one != path)
    assert [(turn.user, turn.reason) for turn in beside] == [("one", "length"), ("two", "length")]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def test_a_folder_that_cannot_be_written_is_one_warning(
    chat: Chat, target: tuple[str, str]
) -> None:
    conversations_folder().parent.mkdir(parents=True)
    conversations_folder().write_text("a file")
    told = chat(*target, "--save", lines="hello\nmore\n/reset\nagain\n")
    assert told.code == 0
    assert told.err.count("warning: ") == 1
    assert "the conversation is not kept: File exists" in told.err
    assert len(ends(told)) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="no ulimit")
def test_a_full_disk_is_one_warning(tiny: Path) -> None:
    command = f"{sys.executable} -m specli chat -t {tiny}/target.gguf -d none --save -n 20"
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 1; {command} 2>&1 >/dev/null"],
        input=b"hello\nmore\n",
        capture_output=True,
    )
    err = done.stdout.decode()
    assert done.returncode == 0
    assert err.count("warning: ") == 1
    assert "the conversation is not kept: File too large" in err
    assert err.count("20 tokens at") == 2


@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked there")
def test_one_that_is_open_elsewhere_is_left_alone(
    specli: Specli, chat: Chat, target: tuple[str, str]
) -> None:
    chat(*target, "--save", lines="hello\n")
    name = the_only_one()
    _, journal = reopen(saved()[0])
    told = chat("--continue", lines="more\n")
    assert (told.code, told.out) == (1, "")
    assert f"error: {name}: is open in another chat" in told.err
    assert specli("chats", "rm", name).code == 1
    journal.close()
    assert specli("chats", "rm", name).err == f"removed: {name}\n"
    assert not saved()
    assert not state_file(name).exists()


def test_list_show_and_export(specli: Specli, chat: Chat, target: tuple[str, str]) -> None:
    assert "there are none" in specli("chats", "list").err
    assert specli("chats", "list", "--json").out == "[]\n"
    chat(*target, "--save", lines="hello  there\nmore\n")
    name = the_only_one()
    line = specli("chats", "list").out
    assert line.startswith(f"{name}  20")
    assert line.endswith("    2 turns  hello there\n")
    (about,) = json.loads(specli("chats", "list", "--json").out)
    assert (about["id"], about["turns"], about["target"]) == (name, 2, target[1])
    assert "## User\n\nmore\n" in specli("chats", "show", name[:4]).out
    assert "## User\n\nmore\n" in specli("chats", "export", name).out
    assert "## User\n\nmore\n" in specli("chats", "export", name, "--out", "-").out
    exported = json.loads(specli("chats", "export", name, "--format", "json").out)
    assert [m["role"] for m in exported["messages"]] == ["user", "assistant"] * 2
    assert specli("chats", "export", name, "--out", "talk.json").code == 0
    assert json.loads(Path("talk.json").read_text()) == exported
    done = specli("chats", "export", name, "--out", "talk.md")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert Path("talk.md").read_text().startswith(f"<!-- specli conversation {name} -->")
    assert specli("chats", "export", name, "--out", "talk.md").code == 0  # over itself
    Path("talk.md").write_text("precious")
    refused = specli("chats", "export", name, "--out", "talk.md")
    assert refused.code == 2
    assert "is no conversation of specli, so it is not written over" in refused.err
    assert Path("talk.md").read_text() == "precious"
    conversations_folder().joinpath("zz.jsonl").write_text("{}\n")
    assert "warning: zz: is no conversation" in specli("chats", "list").err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--resume", "nope"], "no conversation is called nope"),
        (["--continue"], "there is no conversation to continue"),
        (["--continue", "--resume", "x"], "exclude each other"),
    ],
)
def test_what_cannot_be_resumed(specli: Specli, args: list[str], said: str) -> None:
    done = specli("chat", *args)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("error:") == 1


LONG = "tell me more of it " * 4


def test_a_full_context_stops_by_default(chat: Chat, target: tuple[str, str]) -> None:
    told = chat(*target, "--ctx", 150, lines=f"{LONG}\n" * 3)
    assert told.code == 2
    assert "tokens of conversation, the context holds 150" in told.err
    assert "--overflow drop" in told.err
    assert len(ends(told)) == 1


def test_or_the_oldest_turns_are_dropped(chat: Chat, target: tuple[str, str]) -> None:
    system = ("--system", "Always be very brief.")
    told = chat(
        *target, *system, "--ctx", 200, "--overflow", "drop", "--save", lines=f"{LONG}\n" * 3
    )
    assert told.code == 0
    assert len(ends(told)) == 3
    assert told.err == "context: full; the oldest 2 turns were dropped\n"
    kept = parse(saved()[0].read_bytes(), "x")
    assert len(kept.turns) == 3  # in the file all are
    assert kept.n_dropped == 2
    assert all(stats["cache_n"] > 20 for stats in ends(told)[1:])  # the system message stays
    more = chat("--continue", "--overflow", "drop", lines="and?\n")
    assert "full" not in more.err  # what was dropped stays so
    assert ends(more)[0]["prompt_n"] < 60
    too_long = chat(*target, "--ctx", 100, "--overflow", "drop", lines=f"{LONG * 3}\nhello\n")
    assert too_long.code == 2
    assert "the context holds 100" in too_long.err
    assert len(ends(too_long)) == 1


def test_an_answer_goes_on_where_the_oldest_turns_made_room(
    chat: Chat, target: tuple[str, str]
) -> None:
    said = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "zq" * 55}]
    Path("a.json").write_text(json.dumps(said))  # a prompt of some 160 tokens
    args = (*target, "--ctx", 200, "-n", 60, "--overflow", "drop", "--save")
    told = chat(*args, lines="/load a.json\nand then?\n")
    assert told.err.endswith("context: full; the oldest 1 turn was dropped\n")
    (stats,) = ends(told)
    assert stats["predicted_n"] == stats["draft_rounds"] == 60
    assert stats["prompt_n"] > 200, "it was evaluated in one part"
    events = [json.loads(line) for line in told.out.splitlines()]
    answer = "".join(event.get("text", "") for event in events)
    turns = parse(saved()[0].read_bytes(), "x").turns
    assert (turns[1].answer, turns[1].reason) == (answer, "length")
    alone = chat(*target, "--ctx", 100, "-n", 100, "--overflow", "drop", lines="hello\n")
    assert "the context is full" in alone.err  # there is nothing to drop


def test_who_drops_turns_already_is_not_told_to(chat: Chat, target: tuple[str, str]) -> None:
    long = "word " * 200
    told = chat(*target, "--ctx", 128, "--overflow", "drop", lines=f"{long}\n")
    assert "hint: /reset forgets the conversation, --ctx holds more; a shorter" in told.err
