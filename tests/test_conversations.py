"""What is kept of a conversation: line by line, whatever tears, and as it is given away."""

import errno
import json
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from specli.chat import Message
from specli.conversation_files import (
    Journal,
    conversations_folder,
    find,
    latest,
    read,
    remove,
    reopen,
    saved,
)
from specli.conversations import (
    Conversation,
    Turn,
    as_json,
    as_markdown,
    from_json,
    messages,
    parse,
)
from specli.errors import SpecliError, UsageError
from specli.files import write_whole

Failed = list[OSError]
TURNS = (Turn("hello", "Hi.", reason="eog"), Turn("more?", "No, because", "hm", "interrupted"))


def journal(name: str = "ab12", failed: Failed | None = None) -> Journal:
    about = {"id": name, "created": "2026-01-02T03:04:05+00:00", "target": "demo", "system": "s"}
    failures = [] if failed is None else failed
    made = Journal(conversations_folder() / f"{name}.jsonl", about)
    made.on_failure = failures.append
    return made


def test_what_was_written_is_read() -> None:
    kept = journal()
    assert not conversations_folder().exists()  # nothing was said
    kept.note("system", text="Be brief.")
    kept.turns(TURNS)
    kept.user("bye")
    kept.close()
    path = find("ab")
    whole = read(path)
    assert whole.turns == (*TURNS, Turn("bye"))
    assert (whole.id, whole.target, whole.system, whole.title) == (
        *("ab12", "demo"),
        *("Be brief.", "hello"),
    )
    assert whole.changed > whole.created
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_every_cut_of_the_file_keeps_what_stands_before_it() -> None:
    kept = journal()
    kept.turns((*TURNS, Turn("größer", "größer\n\u2028", reason="length")))
    kept.close()
    data = find("ab12").read_bytes()
    first = data.index(b"\n") + 1
    n_turns = 0
    for end in range(first, len(data) + 1):
        whole = parse(data[:end], "cut")
        assert whole.n_damaged == (0 if data[:end].endswith((b"\n", b"}")) else 1)
        assert len(whole.turns) >= n_turns
        n_turns = len(whole.turns)
        assert whole.turns[:2] == TURNS[: len(whole.turns)] or n_turns <= 2
    assert n_turns == 3


def test_what_comes_after_a_torn_line_is_not_lost() -> None:
    kept = journal()
    kept.turns(TURNS)
    kept.close()
    path = find("ab12")
    path.write_bytes(path.read_bytes() + b'{"type": "user", "te')
    whole, again = reopen(path)
    assert (whole.turns, whole.n_damaged) == (TURNS, 1)
    again.user("third")
    again.text("answer")
    again.close()
    assert read(path).turns == (*TURNS, Turn("third", "answer"))


def test_an_answer_is_on_the_disk_while_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    kept = journal()
    kept.user("hello")
    seen = []
    for piece in ("a", "b", "c", "d"):
        clock[0] += 0.15
        kept.text(piece)
        seen.append(read(find("ab12")).turns[-1].answer)
    assert seen == ["", "ab", "ab", "abcd"]
    kept.done("eog")
    assert read(find("ab12")).turns == (Turn("hello", "abcd", reason="eog"),)


def test_undo_retry_models_and_dropped_turns() -> None:
    kept = journal()
    kept.turns(TURNS)
    kept.note("dropped", n_turns=2)
    kept.note("undo")
    kept.note("retry")
    kept.text("Hello!")
    kept.note("models", target="other", draft="none")
    kept.note("of a later version", text="?")
    kept.close()
    whole = read(find("ab12"))
    assert whole.turns == (Turn("hello", "Hello!"),)
    assert (whole.target, whole.draft, whole.n_dropped) == ("other", "none", 1)


def test_one_conversation_is_open_once() -> None:
    first, other = journal("ab12"), journal("ac34")
    for i in range(3):  # two at once do not get into each other's way
        for kept in (first, other):
            kept.user(f"{i} {kept is first}")
            kept.text("answer")
            kept.done("eog")
    if sys.platform != "win32":
        with pytest.raises(SpecliError, match="is open in another chat"):
            reopen(find("ab12"))
        with pytest.raises(SpecliError, match="is open in a chat"):
            remove(find("ab12"))
    first.close()
    other.close()
    for name, said in (("ab", "True"), ("ac", "False")):
        assert [turn.user for turn in read(find(name)).turns] == [f"{i} {said}" for i in range(3)]
    reopen(find("ab12"))[1].close()
    remove(find("ab12"))
    with pytest.raises(UsageError, match="no conversation is called ab"):
        find("ab")


def test_names_are_unique_beginnings() -> None:
    for name in ("ab12", "ab34"):
        kept = journal(name)
        kept.user("hello")
        kept.close()
    assert find("AB3").stem == "ab34"
    with pytest.raises(UsageError, match="2 conversations begin so: ab"):
        find("ab")
    with pytest.raises(UsageError, match="no conversation"):
        find("")


def test_a_folder_that_cannot_be_written_is_said_once() -> None:
    conversations_folder().parent.mkdir(parents=True)
    conversations_folder().write_text("a file")
    failed: Failed = []
    kept = journal(failed=failed)
    kept.turns(TURNS)
    kept.close()
    assert len(failed) == 1
    assert not kept.kept


def test_a_full_disk_is_said_once_and_leaves_what_was_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed: Failed = []
    kept = journal(failed=failed)
    kept.turns(TURNS[:1])
    real: Callable[[int, bytes], int] = os.write

    def full(file: int, data: bytes) -> int:
        if len(data) > 5:
            return real(file, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        kept.user("lost")
        kept.text("lost")
        kept.done("eog")
    kept.user("not kept")
    assert [error.errno for error in failed] == [errno.ENOSPC]
    assert not kept.kept
    assert read(find("ab12")).turns == TURNS[:1]


def test_a_disk_that_is_full_from_the_first_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        journal().user("lost")
    assert not saved()


def test_the_latest_one_is_a_conversation() -> None:
    assert latest() is None
    journal("ab12").turns(TURNS)
    (conversations_folder() / "cd34.jsonl").touch()
    assert saved()[0].stem == "cd34"
    assert latest() == conversations_folder() / "ab12.jsonl"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is no conversation"),
        (b'{"type": "user"}\n', "is no conversation"),
        (b"[1]\n", "is no conversation"),
        (b'{"type": "conversation", "schema": 2}\n', "schema 2, this specli knows 1"),
    ],
)
def test_other_files_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(data, "x")


def test_the_model_is_given_what_was_answered() -> None:
    turns = [*TURNS, Turn("never answered", reason="interrupted"), Turn("now")]
    assert messages("s", turns) == [
        Message("system", "s"),
        *(Message("user", "hello"), Message("assistant", "Hi.")),
        *(Message("user", "more?"), Message("assistant", "No, because", "hm")),
        Message("user", "now"),
    ]
    assert messages("", []) == []


def test_json_there_and_back() -> None:
    whole = Conversation("ab12", "2026-01-02", "demo", "ngram", "s", {"k": None}, TURNS)
    text = as_json(whole)
    assert from_json(text, "x").turns == TURNS
    assert from_json(text, "x").system == "s"
    assert [m["role"] for m in json.loads(text)["messages"]] == [
        *("system", "user", "assistant"),
        *("user", "assistant"),
    ]
    unanswered = Conversation("ab12", "2026-01-02", turns=(Turn("hello"), Turn("again")))
    assert from_json(as_json(unanswered), "x").turns == unanswered.turns
    bare = '[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]'
    assert from_json(bare, "x").turns == (Turn("a", "b", reason="eog"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("3", "holds no conversation"),
        ('{"messages": [{"role": "user"}]}', "holds no conversation"),
        ('[{"role": "assistant", "content": "x"}]', "of role assistant has no place"),
        ('[{"role": "tool", "content": "x"}]', "of role tool has no place"),
        ('{"schema": 9, "messages": []}', "schema 9"),
    ],
)
def test_other_json_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        from_json(text, "x")


def test_markdown_says_what_broke_off() -> None:
    text = as_markdown(Conversation("ab12", "2026-01-02T03", "demo", turns=(*TURNS, Turn("oh"))))
    assert text.startswith("<!-- specli conversation ab12 -->\n\n# hello\n\ndemo, 2026-01-02\n")
    assert "## User\n\nmore?\n\n## Assistant\n\n<details><summary>Thought</summary>\n\nhm" in text
    assert text.index("No, because") < text.index("*(interrupted)*") < text.index("*(not answered)")


def test_a_copy_has_its_own_name_whatever_its_head_says() -> None:
    kept = journal("ab12")
    kept.turns(TURNS)
    kept.close()
    copy = conversations_folder() / "cd34.jsonl"
    copy.write_bytes(find("ab12").read_bytes())
    assert read(copy).id == "cd34"
    assert parse(b'{"type": "conversation", "schema": 1, "id": "../x"}\n', "ef56").id == "ef56"


@pytest.mark.skipif(sys.platform == "win32", reason="a named pipe is a file of Unix")
def test_what_is_no_file_is_no_conversation() -> None:
    kept = journal("ab12")
    kept.user("hello")
    kept.close()
    os.mkfifo(conversations_folder() / "cd34.jsonl")  # it would be read for ever
    assert [path.stem for path in saved()] == ["ab12"]


@pytest.mark.skipif(sys.platform == "win32", reason="a named pipe is a file of Unix")
def test_what_is_no_regular_file_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"):
        write_whole(tmp_path / "link", b"x")
    assert (tmp_path / "pipe").is_fifo()
