"""run --file, --output and --quiet."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specli.errors import Interrupted
from tests.cli.conftest import Result

Specli = Callable[..., Result]
GREEDY = ("--temp", 0, "--threads", 1, "-n", 20)


def test_files_come_before_the_prompt_in_fences(specli: Specli, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("see ```code```\n")
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbftwo")
    a, b = tmp_path / "a.md", tmp_path / "b.txt"
    text = f"{a}:\n````\nsee ```code```\n````\n\n{b}:\n```\ntwo\n```\n\nWhat?"
    args = ("-t", tiny / "target.gguf", "--no-stats", *GREEDY)
    done = specli("run", "What?", "-f", a, "--file", b, *args)
    assert (done.code, done.err) == (0, "")
    assert done.out == specli("run", text, *args).out


@pytest.mark.parametrize(
    ("name", "said"),
    [("none", "cannot be read: No such file"), ("", "is a folder"), ("binary", "is no text")],
)
def test_what_cannot_be_attached_is_an_error(
    specli: Specli, tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "binary").write_bytes(b"GGUF\0\1")
    done = specli("run", "What?", "--file", tmp_path / name, "-t", "missing.gguf")
    assert done.code == 2
    assert said in done.err


def test_an_answer_goes_into_a_file(specli: Specli, tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "answer.txt"
    file.write_text("of yesterday")
    args = ("-t", tiny / "target.gguf", *GREEDY)
    done = specli("run", "hello", *args, "--output", file)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("speculation ")
    assert file.read_text() == specli("run", "hello", *args).out
    assert [path.name for path in tmp_path.glob("answer*")] == ["answer.txt"]
    for output, said in ((tmp_path, "is a folder"), (tmp_path / "no" / "x", "there is no folder")):
        refused = specli("run", "hello", *args, "-o", output)
        assert refused.code == 2
        assert said in refused.err


def test_a_dash_is_stdout(
    specli: Specli, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    args = ("-t", tiny / "target.gguf", *GREEDY)
    assert specli("run", "hello", *args, "-o", "-").out == specli("run", "hello", *args).out
    batch = ("run", "--batch", "-", *args, "-o", "-")
    assert specli(*batch, stdin=b'{"prompt": "hello"}').out.startswith('{"id": 1, "text": ')
    refused = specli("trace", "hello", *args, "-o", "-")
    assert (refused.code, refused.err) == (2, "error: -: stdout is no file, a file is wanted\n")
    assert not (tmp_path / "-").exists()


def test_ctrl_c_leaves_no_half_of_an_answer(tiny: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "specli", "run", "hello", "-t", str(tiny / "target.gguf")]
    command += ["--ctx", "0", "--temp", "1", "-d", "none", "-o", str(tmp_path / "answer.txt")]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    said = f"warning: {tmp_path / 'answer.txt'} was not written: the answer was interrupted"
    assert said.encode() in err
    assert not list(tmp_path.glob("answer*"))


def test_ctrl_c_while_models_load_says_what_is_not_written(
    specli: Specli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise Interrupted("interrupted")

    monkeypatch.setattr("specli.cli.session.load_session", interrupted)
    path = tmp_path / "answer.txt"
    done = specli("run", "hello", "-o", path)
    assert (done.code, done.out) == (130, "")
    assert done.err == f"warning: {path} was not written: the answer was interrupted\n"
    assert specli("run", "hello").err == ""


def test_quiet_says_nothing_but_errors(specli: Specli, tiny: Path) -> None:
    done = specli("run", "hello", "-q", "-t", tiny / "recurrent.gguf", *GREEDY)
    assert (done.code, done.err) == (0, "")
    assert done.out
    failed = specli("run", "hello", "-q", "-t", tiny / "missing.gguf")
    assert failed.code == 3
    assert failed.err.startswith("error: ")


def test_an_answer_goes_over_neither_a_page_nor_the_model(
    specli: Specli, tiny: Path, tmp_path: Path
) -> None:
    model, page = tmp_path / "model.gguf", tmp_path / "page.html"
    model.write_bytes((tiny / "target.gguf").read_bytes())
    before = model.read_bytes()
    done = specli("run", "hello", "-t", model, "-n", 3, "-o", model)
    assert (done.code, done.out) == (2, "")
    assert f"{model}: is the model itself" in done.err
    assert model.read_bytes() == before
    link = tmp_path / "link.gguf"
    link.symlink_to(model)
    assert specli("run", "hello", "-t", model, "-n", 3, "-o", link).code == 2
    assert link.is_symlink()
    both = specli("run", "hello", "-t", model, "-o", page, "--trace", tmp_path / "." / page.name)
    assert both.code == 2
    assert f"--output and --trace are both {page}" in both.err
    assert not page.exists()
