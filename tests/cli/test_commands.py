"""Every command of a chat: typed at terminals of every kind, and through a pipe."""

import base64
import io
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pexpect
import pytest

from specli.cli.commands import COMMANDS, words
from specli.cli.talk import Talk
from specli.conversation_files import saved
from tests.cli.conftest import Result
from tests.cli.forking import Forked, Forks
from tests.cli.kinds import Kind, on_every_kind
from tests.cli.test_chat import PROMPT

Specli = Callable[..., Result]


class Typist:
    """Types commands and waits for what has to come, and for the prompt after it."""

    def __init__(self, child: Forked, is_dumb: bool) -> None:
        self.child = child
        self._prompt = r"\n> " if is_dumb else PROMPT
        self.typed: set[str] = set()
        child.expect(self._prompt)

    def __call__(self, line: str, *expected: str) -> str:
        """expected: patterns, in which a space may be the end of a line."""
        self.typed.add(line.split()[0])
        self.child.sendline(line)
        said = ""
        for pattern in expected:
            self.child.expect(pattern.replace(" ", r"\s+"))
            said += self.child.seen
        self.child.expect(self._prompt)
        return said


@on_every_kind
def test_every_command_at_a_terminal(kind: Kind, forks: Forks, tiny: Path, tmp_path: Path) -> None:
    home = tmp_path / "here"
    with closing(_start(kind, forks, tiny, home)) as child:
        child.logfile_read = output = io.StringIO()
        type_ = Typist(child, kind.is_dumb)
        _every_command(type_, kind)
        child.sendline("/exit")
        child.expect(r"To go on: +specli chat --resume [0-9a-f]{8}".replace(" ", r"\s+"))
        child.expect(pexpect.EOF)
        assert child.wait() == 0
    assert type_.typed | {"/exit"} >= COMMANDS.keys()
    kind.check(output.getvalue())
    whole = json.loads((home / "talk.json").read_text())
    said = [m["content"] for m in whole["messages"] if m["role"] == "user"]
    assert said == ["first", "edited words", "note.txt:\n\na note\n\nwith it"]
    assert whole["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (home / "talk.md").read_text().startswith("<!-- specli conversation ")
    assert "<h2" in (home / "a.html").read_text()
    assert len(list((tmp_path / "data").rglob("*.jsonl"))) == 3  # of the start, /reset, /load


def _start(kind: Kind, forks: Forks, tiny: Path, home: Path) -> Forked:
    """Start a chat in a folder of its own."""
    home.mkdir()
    editor = home / "editor"
    editor.write_text('#!/bin/sh\necho "edited words" >"$1"\n')
    editor.chmod(0o700)
    (home / "note.txt").write_text("a note\n")
    for name in ("target.gguf", "draft.gguf"):  # short names, for narrow terminals
        (home / name).symlink_to(tiny / name)
    models = ("-t", "./target.gguf", "-d", "none", "-n", "5", "--temp", "0", "--threads", "1")
    environment = {"PROMPT_TOOLKIT_NO_CPR": "1", "VISUAL": str(editor), **kind.environment}
    return forks.begin("chat", *models, size=kind.size, folder=home, environment=environment)


def _every_command(type_: Typist, kind: Kind) -> None:
    said = type_("/help", "/help", "on an")
    lines = [line for line in said.splitlines() if line.startswith(("/", "    "))]
    assert len(lines) >= 16  # all but the first stand at the beginning of a line
    assert not [line for line in lines if len(line) >= kind.size[0]]
    type_("/stats", "nothing has been answered")
    type_("/undo", "error: nothing has been said")
    type_("/copy", "error: nothing has been")
    type_("/system Be brief.", "system: Be brief.")
    type_("first", "5 tokens at", r"\+ 0 cached")
    type_("/retry", "temperature 0", "5 tokens at")
    type_("second", "5 tokens at", r"\+ [1-9]\d* cached")
    type_("/edit", "5 tokens at")
    type_("gone", "5 tokens at")
    type_("/undo", "undo: forgotten: gone")
    if kind.is_dumb:
        type_("/copy", "error: there is no terminal with a clipboard", "hint: /save FILE")
    else:
        copied = type_("/copy", "\x1b]52;c;[A-Za-z0-9+/=]+\x07", "copied: \\d+ char")
        assert base64.b64decode(copied.split("52;c;")[1].split("\x07")[0])
    type_("/temp 0.01", "temp: 0.01")  # draws as good as none: no answer ends early
    type_("/k 3", "k: 3")
    type_("/trace", "trace: no page is written")
    type_("/draft ./draft.gguf", "draft: draft and ngram|draft: draft")
    type_("/k", "k: 3")
    type_("/model ./nothing.gguf", "error: ")
    type_("/model ./target.gguf", "model: target, drafts by ngram")
    type_("/file note.txt", "attached: note.txt, ")
    type_("/trace a.html", "trace: a.html")
    type_("with it", "5 tokens at")
    type_("/trace", "trace: a.html")
    type_("/stats", "guessed by n-grams")
    type_("/save talk.json", "saved: talk.json")
    type_("/save talk.md", "saved: talk.md")
    type_("/reset", "reset: what is said next begins a conversation")
    type_("anew", "5 tokens at", "prompt")
    type_("/load talk.json", "> first", "> edited words")
    type_("go on", "5 tokens at")
    type_("/frob", "error: no command is called /frob")
    type_("/k lots", "error: /k is lots, auto or 0 to 64")


@pytest.fixture
def talk(
    specli: Specli, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Hold a conversation through a pipe, in a folder of its own."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def call(*lines: str, args: tuple[object, ...] = ()) -> Result:
        fixed = ("-t", tiny / "target.gguf", "-d", "none", "-n", 5, "--temp", 0, "--threads", 1)
        return specli("chat", *fixed, *args, stdin="".join(f"{one}\n" for one in lines).encode())

    return call


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/frob", "no command is called /frob"),
        ("/undo", "nothing has been said yet"),
        ("/retry", "nothing has been said yet"),
        ("/edit", "nothing has been said yet"),
        ("/save", "nothing has been said yet"),
        ("/undo 2", "/undo takes no argument, found '2'"),
        ("/file nothing.txt", "nothing.txt: cannot be read: No such file or directory"),
        ("/file .", ".: is no file of text"),
        ("/load", "/load needs an argument: /load FILE|ID"),
        ("/load nothing", "no conversation is called nothing"),
        ("/load nothing.json", "nothing.json: cannot be read: No such file or directory"),
        (f"/load {'x' * 300}", "ile name too long"),
        ("/temp hot", "/temp is hot, a number of at least 0 is wanted"),
        ("/temp -1", "/temp is -1, a number of at least 0 is wanted"),
        ("/temp nan", "/temp is nan, a number of at least 0 is wanted"),
        ("/k 1.5", "/k is 1.5, auto or 0 to 64 is wanted"),
        ("/k 65", "/k is 65, auto or 0 to 64 is wanted"),
        ("/model nobody", "nobody"),
        ("/draft ./nothing.gguf", "nothing.gguf: no such file"),
        ("/trace no/where.html", "there is no folder no"),
    ],
)
def test_a_bad_argument_is_one_line_and_the_conversation_goes_on(
    talk: Callable[..., Result], line: str, said: str
) -> None:
    done = talk(line, "hello")
    assert done.err.count("error: ") == 1
    (error,) = (one for one in done.err.splitlines() if one.startswith("error: "))
    assert said in error
    assert "5 tokens at" in done.err
    assert done.code in (2, 3)


def test_files_that_cannot_be_attached(talk: Callable[..., Result]) -> None:
    Path("latin1.txt").write_bytes(b"gr\xf6\xdfer")
    Path("empty.txt").write_bytes(b"\n")
    Path("long.txt").write_text("word " * 200)
    Path("huge.txt").write_text("x" * 100_000)
    files = ("latin1.txt", "empty.txt", "long.txt", "huge.txt")
    done = talk(*(f"/file {name}" for name in files), "hello", args=("--ctx", 150))
    errors = [one for one in done.err.splitlines() if one.startswith("error: ")]
    assert errors[0] == "error: latin1.txt: is not text in UTF-8"
    assert errors[1] == "error: empty.txt: is empty"
    assert "tokens, the context holds 150" in errors[2]
    assert errors[3] == "error: huge.txt: has 100.0 kB, the context holds 150 tokens"
    assert "5 tokens at" in done.err


def test_what_is_attached_is_listed_once_and_can_be_taken_off(talk: Callable[..., Result]) -> None:
    Path("a.txt").write_text("old")
    Path("b.txt").write_text("two")
    done = talk("/file a.txt", "/file b.txt", "/file", "/file -", "/file")
    assert "attached: a.txt, b.txt; /file - takes it off\n" in done.err
    assert done.err.count("attached: (nothing)\n") == 2
    Path("a.txt").write_text("new")
    talk("/file a.txt", "/file ./a.txt", " /help me", "/save a.json")
    said = json.loads(Path("a.json").read_text())["messages"]
    assert said[0]["content"] == "a.txt:\n\nnew\n\n /help me"


def test_retry_says_the_same_only_where_it_is(talk: Callable[..., Result]) -> None:
    same = "at temperature 0 the answer is the same"
    assert talk("hello", "/retry", "/temp 1", "/temp 0", "/retry").err.count(same) == 2
    done = talk("/temp 1", "hello", "/temp 0", "/retry", "/system Be.", "/retry", "/save a.json")
    assert same not in done.err
    loaded = talk("/load a.json", "/retry", "/retry")
    assert "loaded: a.json, 1 turn\n" in loaded.err
    assert loaded.err.count(same) == 1


def test_copy_takes_the_last_answer_that_there_is(talk: Callable[..., Result]) -> None:
    talk("hello", "/save a.json")
    whole = json.loads(Path("a.json").read_text())
    whole["messages"].append({"role": "user", "content": "not answered"})
    Path("a.json").write_text(json.dumps(whole))
    assert "error: there is no terminal with a clipboard" in talk("/load a.json", "/copy").err


def test_another_pair_that_fails_leaves_the_old_one_with_all_that_it_knew(
    talk: Callable[..., Result], tiny: Path
) -> None:
    done = talk(
        "hello",
        f"/draft {tiny}/renamed.gguf",
        f"/model {tiny}/no_template.gguf",
        "more",
        f"/draft {tiny}/draft.gguf",
        "third",
        f"/model {tiny}/swa.gguf",
        "fourth",
    )
    assert "error: no_template has no chat template" in done.err
    assert done.err.count("error: ") == 2
    cached = [
        int(line.split(" new + ")[1].split()[0])
        for line in done.err.splitlines()
        if "at " in line and " new + " in line
    ]
    assert cached[0] == 0 < cached[1] < cached[2]
    assert cached[3] == 0  # another model
    assert "; it reads the conversation before its first guess\n" in done.err
    said = "the conversation is read again before the next answer"
    assert f"model: swa, drafts by ngram; {said}\n" in done.err
    assert done.err.count(said) == 1


def test_k_and_temperature_change_without_loading(talk: Callable[..., Result], tiny: Path) -> None:
    lines = "hello", "/temp 1.5", "/k 2", "more", "/k AUTO", "again"
    done = talk(*lines, args=("-d", tiny / "draft.gguf", "-k", 4, "--json"))
    events = [json.loads(line) for line in done.out.splitlines()]
    starts = [event for event in events if event["type"] == "start"]
    settings = [
        (one["settings"]["k"], one["settings"]["sampling"]["temperature"]) for one in starts
    ]
    assert settings == [(4, 0.0), (4, 1.5), (2, 1.5), (None, 1.5)]
    stats = [event["stats"] for event in events if event["type"] == "done"]
    assert stats[0]["cache_n"] == 0
    assert stats[1]["cache_n"] > 15
    assert stats[2]["cache_n"] > stats[1]["cache_n"]
    assert done.err == "temp: 1.5\nk: 2, drafts by draft\nk: auto, drafts by draft and ngram\n"


def test_a_draft_that_k_left_where_it_was_guesses_once_it_may(
    talk: Callable[..., Result], tiny: Path
) -> None:
    lines = "hello", "/k 2", "more", "/k 0", "again", "/draft"
    done = talk(*lines, args=("-d", tiny / "draft.gguf", "-k", 0, "--json"))
    events = [json.loads(line) for line in done.out.splitlines()]
    stats = [event["stats"] for event in events if event["type"] == "done"]
    assert [one["method"] for one in stats] == ["none", "draft", "none"]
    assert stats[1]["draft_n"] > 0
    assert stats[2]["cache_n"] > stats[1]["cache_n"] > 15
    assert done.err.splitlines() == [
        *("k: 2, drafts by draft", "k: 0, no drafts", "draft: no drafts, /k is 0"),
    ]


def test_retry_draws_anew_and_undo_forgets(talk: Callable[..., Result]) -> None:
    args = ("--temp", 3, "--seed", 1, "--json", "--save")
    done = talk("hello", "/retry", "/retry", "more", "/undo", "/save talk.json", args=args)
    texts, answer = [], ""
    for event in map(json.loads, done.out.splitlines()):
        answer += event.get("text", "")
        if event["type"] == "done":
            texts.append(answer)
            answer = ""
    assert len(set(texts)) == 4
    exported = json.loads(Path("talk.json").read_text())["messages"]
    assert [m["content"] for m in exported] == ["hello", texts[2]]
    kept = talk("/save kept.json", args=("--continue",))
    assert kept.code == 0
    assert json.loads(Path("kept.json").read_text())["messages"] == exported


def test_load_goes_on_in_the_conversation_of_that_name(talk: Callable[..., Result]) -> None:
    talk("first", args=("--save",))
    (path,) = saved()
    done = talk("other", f"/load {path.stem[:5]}", "second", f"/load {path.stem}", args=("--save",))
    assert "> first\n" in done.err
    assert f"error: {path.stem} is this conversation" in done.err
    assert len(saved()) == 2
    copied = talk(f"/load {path}", "third")
    assert "> second\n" in copied.err
    users = [json.loads(line)["text"] for line in path.read_text().splitlines() if '"user"' in line]
    assert users == ["first", "second"]
    # What the target remembered of it was kept, too.
    last = next(line for line in reversed(done.err.splitlines()) if " cached in " in line)
    assert int(last.split(" new + ")[1].split()[0]) > 15


def test_save_writes_over_nothing_but_conversations(talk: Callable[..., Result]) -> None:
    Path("notes.md").write_text("precious")
    done = talk("hello", "/save notes.md", "/save a.md", "more", "/save a.md", "/save")
    assert "error: notes.md: exists and is no conversation of specli" in done.err
    assert Path("notes.md").read_text() == "precious"
    assert "## User\n\nmore" in Path("a.md").read_text()
    assert len(list(Path().glob("conversation-*.md"))) == 1


def test_help_of_a_chat_comes_from_the_table_of_commands() -> None:
    assert words().keys() == COMMANDS.keys()
    assert words()["/file"] == "file"
    assert words()["/model"] == "model"
    assert words()["/draft"] == "draft"
    assert words()["/undo"] == ""
    assert "auto" in words()["/k"]


def test_a_trace_goes_on_where_the_same_model_was_loaded_again(
    talk: Callable[..., Result], tiny: Path
) -> None:
    lines = ("/trace a.html", "hello", "/model ./nothing.gguf", "more", "/k 9", "third")
    done = talk(*lines, "/draft none", "fourth", args=("-d", tiny / "draft.gguf", "-k", 2))
    assert done.err.count("5 tokens at") == 4
    page = Path("a.html").read_text()
    assert page.count("<h2") >= 4
    assert "draft, then none" in page
    done = talk(*lines[:2], f"/model {tiny}/swa.gguf", "another")
    assert "trace: a.html ends here, another target answers;" in done.err
    assert done.err.count("5 tokens at") == 2


def test_a_model_file_that_is_removed_meanwhile_does_no_harm(
    specli: Specli, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gone.gguf"
    path.write_bytes((tiny / "target.gguf").read_bytes())
    real = Talk.set_system

    def removing(talk: Talk, text: str) -> None:
        path.unlink()
        real(talk, text)

    monkeypatch.setattr(Talk, "set_system", removing)
    args = ("-t", path, "-d", "none", "-n", 5, "--threads", 1, "--save")
    done = specli("chat", *args, stdin=b"hello\n/system now\n/temp 1\nmore\n")
    assert (done.code, done.err.count("5 tokens at")) == (0, 2)
    assert "error" not in done.err
