"""Every key, at the prompt and during an answer, on terminals of every kind."""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.cli.forking import Forks
from tests.cli.kinds import Kind, on_every_kind
from tests.cli.terminal import Seen, Terminal, forked, prompted

DRIVER = """
from types import SimpleNamespace as Some
from urllib.parse import quote
from specli.cli.prompting import typed_lines
words = {"/file": "file", "/model": "model", "/draft": "draft", "/k": ("auto", "4"), "/help": ""}
ready = Some(session=Some(method="ngram", pair=Some(target=Some(name="target"), draft="ngram")))
for n, line in enumerate(typed_lines(ready, words), 1):
    print(f"{n}: {quote(line, ' /')}.", flush=True)
"""
UP, DOWN, RIGHT, CTRL_END = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[1;5F"
CTRL_A, CTRL_C, CTRL_D, CTRL_J, CTRL_R = "\x01", "\x03", "\x04", "\n", "\x12"
ALT_ENTER, BACKSPACE = "\x1b\r", "\x7f"
COMPLETED = {
    "/he": "/help",
    "/k a": "/k auto",
    "/model qwen-coder-0": "/model qwen-coder-0.5b",
    "/draft ng": "/draft ngram",
    "/file no": "/file notes.txt",
    "/file su": "/file sub/",
}


def answers_to(message: str) -> Callable[[list[str]], bool]:
    """Return what says whether something stands below a message."""

    def answers(rows: list[str]) -> bool:
        line = f"> {message}"
        return line in rows and any(rows[rows.index(line) + 1 :])

    return answers


class Typist:
    """Types at a prompt, and looks at what comes of it.

    On a dumb terminal prompt_toolkit obeys all keys, but draws nothing: after each change of the
    line it prints the character before the cursor. So a line from the history or a completion is
    not seen there, only sent; a pasted text and a search neither.
    """

    def __init__(self, shown: Terminal, is_dumb: bool) -> None:
        self._shown, self._is_dumb = shown, is_dumb
        self._n = 0
        self._printed = ""

    def sends(self, keys: str, line: str) -> None:
        """Type keys that send a line."""
        self._n += 1
        self.types(keys)
        self._shown.until(f"{self._n}: {quote(line, ' /')}.")
        self._shown.until(prompted)
        self._printed = ""

    def types(self, keys: str, seen: Seen = "") -> None:
        """Type keys, and wait until a text, or what a function looks for, is on the screen."""
        self._shown.send(keys)
        if seen:
            self._shown.until(seen)

    def searches(self, text: str) -> None:
        """Search the history."""
        self.types(f"{CTRL_R}{text}", "" if self._is_dumb else f"I-search backward: {text}")

    def completes(self, begun: str, whole: str) -> None:
        """Let a line be completed."""
        self._printed += begun + whole[-1]
        self.types(f"{begun}\t", f"> {self._printed if self._is_dumb else whole}")

    def clears(self) -> None:
        """Take back what was typed."""
        self.types(CTRL_C)
        if not self._is_dumb:
            self._shown.until(prompted)


@on_every_kind
def test_every_key_at_the_prompt(
    kind: Kind, forks: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    for name in ("notes.txt", "tiny-one.gguf", "tiny-two.gguf"):
        Path(name).touch()
    with forked(forks, size=kind.size, code=DRIVER, environment=kind.environment) as shown:
        shown.until(prompted)
        _press_every_key(Typist(shown, kind.is_dumb))
        shown.send(CTRL_D)
        assert shown.end() == 0
        kind.check(shown.output.decode())


def _press_every_key(typist: Typist) -> None:
    typist.sends("one\r", "one")
    typist.sends(f"two{ALT_ENTER}lines{CTRL_J}and three\r", "two\nlines\nand three")
    typist.sends(
        "\x1b[200~many\rlines\r\npasted\nat once\x1b[201~\r", "many\nlines\npasted\nat once"
    )
    typist.sends(f"日本{BACKSPACE}語é\r", "日語é")
    # history: back and forth, also through a message of several lines, and searched
    typist.sends(f"{UP}\r", "日語é")
    typist.sends(f"half{UP * 6}{DOWN * 3}{CTRL_END}\r", "many\nlines\npasted\nat once")
    typist.searches("one")
    typist.sends("\r\r", "one")
    # completion: a command, a word, models by name and by file, files
    for begun, whole in COMPLETED.items():
        typist.completes(begun, whole)
        typist.sends("\r", whole)
    typist.completes("/model ti", "/model tiny-")
    typist.completes("tw", "/model tiny-two.gguf")
    typist.sends("\r", "/model tiny-two.gguf")
    typist.sends("no comm\t\r", "no comm")
    # Ctrl-D deletes and Ctrl-C clears where there is something, both leave an empty line
    typist.sends(f"abd{CTRL_A}{RIGHT}{CTRL_D}c\r", "acd")
    typist.types(f"not this{ALT_ENTER}nor this", "nor this")
    typist.clears()
    typist.sends("but this\r", "but this")


@on_every_kind
def test_every_key_during_an_answer(
    kind: Kind, forks: Forks, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    models = ("-t", str(tiny / "target.gguf"), "-d", str(tiny / "hopeless.gguf"))
    # 64 useless guesses in each round: this answer takes seconds
    slow = ("-k", "64", "-n", "200", "--temp", "0", "--threads", "1")
    args = ("chat", *models, *slow)
    with forked(forks, *args, size=kind.size, environment=kind.environment) as shown:
        shown.until(prompted)
        typist = Typist(shown, kind.is_dumb)
        typist.types("hello\r", answers_to("hello"))
        assert not shown.child.getecho()
        # What was typed before it goes when Ctrl-C comes: terminals do so, whatever runs on them.
        typist.types(f"{UP}{CTRL_R}{ALT_ENTER}\t{CTRL_D}lost\r{CTRL_C}", "interrupted")
        shown.until(prompted)
        typist.types("/save talk.json\r", "saved: talk.json")
        typist.types("/k 0\r", "k: 0")
        shown.until(prompted)
        # What is typed meanwhile is not shown, and waits for the prompt.
        typist.types("again\r", answers_to("again"))
        typist.types("/stats\rnot sent", "guessed by")
        shown.until("> not sent")
        typist.clears()
        shown.send(CTRL_C)
        assert shown.end() == 130
        assert shown.child.getecho()  # a shell wants it
    said = shown.output.decode(errors="replace")
    kind.check(said)
    assert "lost" not in said
    assert said.rindex("tokens at") < said.index("/stats")
    question, answer = json.loads(Path("talk.json").read_text())["messages"]
    assert question["content"] == "hello"
    assert answer["content"]
