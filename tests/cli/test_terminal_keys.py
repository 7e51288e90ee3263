"""Every key of the prompt, on terminals of several widths and abilities."""

import sys
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, terminal

DRIVER = """
import sys
from types import SimpleNamespace as Some
from specli.cli.prompting import typed_lines
words = {"/file": "file", "/model": "model", "/draft": "draft", "/k": ("auto", "4"), "/help": ""}
ready = Some(session=Some(method="ngram", pair=Some(target=Some(name="target"), draft="ngram")))
n = 0
try:
    for line in typed_lines(ready, words):
        n += 1
        print(f"{n}: {ascii(line)}", flush=True)
except KeyboardInterrupt:
    sys.exit(130)
"""
UP, DOWN, CTRL_C, CTRL_D, CTRL_R, ALT_ENTER = "\x1b[A", "\x1b[B", "\x03", "\x04", "\x12", "\x1b\r"
NOT_UTF_8 = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
# columns, environment, the last key and the exit code that it leaves with
KINDS: dict[str, tuple[int, dict[str, str], str, int]] = {
    "narrow": (40, {}, CTRL_C, 130),
    "usual, without colours": (80, {"NO_COLOR": "1"}, CTRL_D, 0),
    "wide, without UTF-8": (200, NOT_UTF_8, CTRL_C, 130),
}
COMPLETED = {
    "/he": "/help",
    "/k a": "/k auto",
    "/model qwen-coder-0": "/model qwen-coder-0.5b",
    "/draft ng": "/draft ngram",
    "/file no": "/file notes.txt",
    "/file su": "/file sub/",
}


def prompted(rows: list[str]) -> bool:
    """Say whether the prompt waits: it stands on the last row that has something on it."""
    return [row for row in rows if row][-1:] == [">"]


class Typist:
    """Types at a prompt, and looks at what comes of it."""

    def __init__(self, shown: Terminal) -> None:
        self._shown = shown
        self._n = 0

    def sends(self, keys: str, line: str) -> None:
        """Type keys that send a line."""
        self._n += 1
        self.types(keys)
        self._shown.until(f"{self._n}: {line!a}")
        self._shown.until(prompted)

    def types(self, keys: str, seen: str = "") -> None:
        """Type keys, and wait until a text is on the screen."""
        self._shown.send(keys)
        if seen:
            self._shown.until(seen)


@pytest.mark.parametrize("kind", KINDS)
def test_every_key(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, more, last_key, code = KINDS[kind]
    (tmp_path / "here" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    for name in ("notes.txt", "tiny-one.gguf", "tiny-two.gguf"):
        Path(name).touch()
    root = str(Path(__file__).parents[2])
    environment = more | {"PYTHONPATH": root}
    with terminal([sys.executable, "-c", DRIVER], columns, 24, **environment) as shown:
        shown.until(prompted)
        press_every_key(shown)
        shown.send(last_key)
        assert shown.end() == code


def press_every_key(shown: Terminal) -> None:
    typist = Typist(shown)
    typist.sends("one\r", "one")
    typist.sends(f"two{ALT_ENTER}lines\nand three\r", "two\nlines\nand three")
    typist.sends(
        "\x1b[200~many\rlines\r\npasted\nat once\x1b[201~\r", "many\nlines\npasted\nat once"
    )
    typist.sends("日本\x7f語é\r", "日語é")
    # history: back and forth, also through a message of several lines, and searched
    typist.sends(f"{UP}\r", "日語é")
    typist.sends(f"half{UP * 6}{DOWN * 3}\x1b[1;5F\r", "many\nlines\npasted\nat once")
    typist.types(f"{CTRL_R}one", "I-search backward: one")
    typist.sends("\r\r", "one")
    # completion: a command, a word, models by name and by file, files
    for begun, whole in COMPLETED.items():
        typist.types(f"{begun}\t", f"> {whole}")
        typist.sends("\r", whole)
    typist.types("/model ti\t", "> /model tiny-")
    typist.types("tw\t", "> /model tiny-two.gguf")
    typist.sends("\r", "/model tiny-two.gguf")
    typist.sends("no comm\t\r", "no comm")
    # Ctrl-C clears the line, and leaves an empty one
    typist.types(f"not this{ALT_ENTER}nor this", "nor this")
    typist.types(CTRL_C)
    shown.until(prompted)
    typist.sends("but this\r", "but this")


def test_a_dumb_terminal_takes_the_same_keys(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    with terminal([sys.executable, "-c", DRIVER], TERM="dumb", PYTHONPATH=root) as shown:
        shown.until(prompted)
        typist = Typist(shown)
        typist.sends("one\r", "one")
        typist.sends(f"two{ALT_ENTER}lines\r", "two\nlines")
        typist.types("not this", "> not this")  # it shows itself before it listens
        typist.sends(f"{CTRL_C}but this\r", "but this")
        shown.send(CTRL_C)
        assert shown.end() == 130
        assert b"\x1b" not in shown.output
