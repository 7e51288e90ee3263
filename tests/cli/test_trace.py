"""specli trace, and --trace of run and chat."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from specli.chat import AnswerEvent
from specli.trace import Tracer
from tests.cli.conftest import Result
from tests.pages.test_trace_page import Reader

Specli = Callable[..., Result]


@pytest.fixture
def model(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    monkeypatch.chdir(tmp_path)
    pair = ["-t", tiny / "target.gguf", "-d", tiny / "draft.gguf", "-k", 3]
    return [*pair, "-n", 30, "--temp", 0, "--threads", 1, "--ctx", 512]


def test_the_page_goes_to_a_new_file_and_its_path_to_stdout(
    specli: Specli, model: list[object], tmp_path: Path
) -> None:
    first = specli("trace", "hello", *model)
    assert (first.code, first.out) == (0, "specli-trace.html\n")
    assert "30 tokens at" in first.err
    assert specli("trace", "hello", *model, "--no-stats").out == "specli-trace-2.html\n"
    found = Reader((tmp_path / "specli-trace.html").read_text())
    assert found.states["accepted"] + found.states["own"] == 30


def test_the_data_as_json(specli: Specli, model: list[object], tmp_path: Path) -> None:
    done = specli("trace", "hello", *model, "--json", "--no-stats")
    (answer,) = json.loads(done.out)["answers"]
    stats, rounds = answer["stats"], answer["rounds"]
    guesses = [guess for one in rounds for guess in one["guesses"]]
    assert stats["draft_rounds"] == len(rounds)
    assert stats["draft_n"] == len(guesses) > 20
    n_accepted = sum(guess["state"] == "accepted" for guess in guesses)
    assert stats["draft_n_accepted"] == n_accepted == sum(one["n_accepted"] for one in rounds)
    assert stats["predicted_n"] == len(rounds) + n_accepted
    assert stats["target_ms"] == pytest.approx(sum(one["target_s"] for one in rounds) * 1000, 1e-3)
    assert not list(tmp_path.glob("*.html"))
    both = specli("trace", "hello", *model, "--json", "--no-stats", "--out", "a.html")
    assert json.loads(both.out)["answers"][0]["prompt"] == "hello"
    assert (tmp_path / "a.html").exists()


def test_run_answers_as_ever_and_writes_the_page(
    specli: Specli, model: list[object], tmp_path: Path
) -> None:
    plain = specli("run", "hello", *model, "--no-stats")
    done = specli("run", "hello", *model, "--no-stats", "--trace", "a.html")
    assert (done.code, done.out, done.err) == (0, plain.out, "trace: a.html\n")
    assert "<h2" in (tmp_path / "a.html").read_text()
    assert specli("run", "hello", *model, "--trace", "a.html").code == 0  # its own page


def test_chat_shows_all_answers(specli: Specli, model: list[object], tmp_path: Path) -> None:
    done = specli("chat", *model, "--trace", "a.html", stdin=b"hello\nagain\n")
    assert done.code == 0
    page = (tmp_path / "a.html").read_text()
    assert "Answer 2" in page
    assert Reader(page).elements["table"] == 2
    quiet = specli("chat", *model, "--trace", "b.html", stdin=b"")
    assert "trace:" not in quiet.err
    assert not (tmp_path / "b.html").exists()


@pytest.mark.parametrize("command", ["run", "chat"])
def test_a_place_that_cannot_be_is_told_before_anything_is_loaded(
    specli: Specli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    words = ["hello"] if command == "run" else []
    for path, said in (
        ("mine.txt", "not written over"),
        (".", "is a folder"),
        ("x/y", "no folder"),
    ):
        done = specli(command, *words, "-t", "missing.gguf", "--trace", path)
        assert done.code == 2
        assert said in done.err
    assert specli("trace", "hello", "-t", "missing.gguf", "--out", "mine.txt").code == 2
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_what_there_is_of_an_interrupted_answer_is_written(
    specli: Specli, model: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Tracer.add
    presses = iter([signal.SIGINT])

    def interrupt(self: Tracer, event: AnswerEvent) -> None:
        add(self, event)
        for press in presses if self.trace().answers else ():
            os.kill(os.getpid(), press)

    monkeypatch.setattr(Tracer, "add", interrupt)
    done = specli("run", "hello", *model, "--trace", "a.html")
    assert done.code == 130
    assert "It was interrupted." in (tmp_path / "a.html").read_text()
