"""specli derive: what it makes guesses, and what it refuses is refused in one line."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import Result

Specli = Callable[..., Result]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand where files may be left."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.real
def test_the_text_is_the_targets_own(specli: Specli, smollm2: Path, tmp_path: Path) -> None:
    made = specli("derive", "demo")
    assert (made.code, made.out) == (0, "demo-draft-q4_0.gguf\n")
    assert made.err.splitlines() == [
        "made: 77.6 MB of 98.4 MB (79%), 4.6 bits for each weight",
        "hint: what it brings: specli bench -t TARGET -d demo-draft-q4_0.gguf",
    ]
    asked = "run", "Name three rivers of Europe", "--temp", 0, "-n", 12
    plain = specli(*asked, "-d", "none", "-q")
    drafted = specli(*asked, "-d", tmp_path / "demo-draft-q4_0.gguf", "-k", 4, "--json")
    events = [json.loads(line) for line in drafted.out.splitlines()]
    assert "".join(e["text"] for e in events if e["type"] == "text") == plain.out.rstrip("\n")
    stats = events[-1]["stats"]
    assert stats["draft_n_accepted"] > 0.2 * stats["draft_n"] > 0


def test_json_says_what_was_made_of_what(specli: Specli, tiny: Path, tmp_path: Path) -> None:
    done = specli("derive", tiny / "target.gguf", "--bits", 8, "-o", "a.gguf", "--json")
    assert (done.code, done.err) == (0, "")
    source = tiny / "target.gguf"
    said = json.loads(done.out)
    assert 8 < said.pop("bits_per_weight") < 15  # with its vocabulary, in a model so small
    assert said == {
        "path": "a.gguf",
        "size_bytes": (tmp_path / "a.gguf").stat().st_size,
        "source": str(source),
        "source_bytes": source.stat().st_size,
        "bits": 8,
    }


def test_a_file_is_replaced_only_where_that_is_asked_for(specli: Specli, tiny: Path) -> None:
    place = Path("a.gguf")
    place.write_text("mine")
    asked = "derive", tiny / "target.gguf", "-o", place
    refused = specli(*asked)
    assert refused.code == 2
    assert refused.err.splitlines() == [
        "error: a.gguf: exists already",
        "hint: -o names another file, --force replaces it",
    ]
    assert place.read_text() == "mine"
    assert specli(*asked, "--force").code == 0
    assert place.read_bytes()[:4] == b"GGUF"


def test_a_model_is_not_replaced_by_its_draft(specli: Specli, tiny: Path) -> None:
    shutil.copy(tiny / "target.gguf", "a.gguf")
    Path("link.gguf").symlink_to("a.gguf")
    before = Path("a.gguf").read_bytes()
    for place in ("a.gguf", "link.gguf"):
        done = specli("derive", "a.gguf", "-o", place, "--force")
        assert (done.code, done.err.splitlines()[0]) == (2, f"error: {place}: is the model itself")
    assert Path("a.gguf").read_bytes() == before


def test_nothing_is_made_where_nothing_is_saved(specli: Specli, tiny: Path) -> None:
    assert specli("derive", tiny / "target.gguf", "--bits", 4, "-o", "four.gguf").code == 0
    done = specli("derive", "four.gguf", "--bits", 8)
    assert done.code == 2
    assert "--bits 8 would make" in done.err
    assert "hint: in no number of bits does it become a tenth smaller" in done.err
    assert [path.name for path in Path().iterdir()] == ["four.gguf"]


def test_what_cannot_be_is_refused_before_it_begins(
    specli: Specli, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tiny / "target.gguf"
    cut = Path("cut.gguf")
    cut.write_bytes(target.read_bytes()[:-100_000])
    Path("text.gguf").write_text("once upon a time")
    refusals: list[tuple[int, str, tuple[object, ...]]] = [
        (2, "--bits 7: 2, 3, 4, 5, 6, 8 are possible", (target, "--bits", 7)),
        (3, "cut.gguf: llama.cpp cannot load this model", (cut,)),
        (3, "text.gguf: is not a GGUF file", ("text.gguf",)),
        (3, "gone.gguf: no such file", ("gone.gguf",)),
        (3, "no model is called 'nonsense'", ("nonsense",)),
        (2, "there is no folder", (target, "-o", "nowhere/a.gguf")),
        (1, "xx.gguf: cannot be written: File name too long", (target, "-o", f"{300 * 'x'}.gguf")),
    ]
    for code, said, asked in refusals:
        done = specli("derive", *asked)
        assert (done.code, done.out) == (code, "")
        assert said in done.err.splitlines()[0]
    free = SimpleNamespace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: free)
    done = specli("derive", target)
    assert done.code == 1
    assert "do not fit on the disk, 10 bytes are free" in done.err
    assert sorted(path.name for path in Path().iterdir()) == ["cut.gguf", "text.gguf"]


def test_a_folder_gets_it_under_its_own_name(specli: Specli, tiny: Path) -> None:
    Path("a b").mkdir()
    done = specli("derive", tiny / "target.gguf", "-o", "a b")
    assert (done.code, done.out) == (0, "a b/target-draft-q4_0.gguf\n")
    target = tiny / "target.gguf"
    assert done.err.splitlines()[1] == (
        f"hint: what it brings: specli bench -t {target} -d 'a b/target-draft-q4_0.gguf'"
    )


@pytest.mark.parametrize("n", [1, 2])
def test_ctrl_c_leaves_nothing(smollm2: Path, tmp_path: Path, n: int) -> None:
    """Of a whole process group, as of a terminal; the second at once, as of an impatient user."""
    command = [sys.executable, "-m", "specli", "derive", str(smollm2), "--bits", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        while not (partial := [*tmp_path.iterdir()]) or not partial[0].stat().st_size:
            assert process.poll() is None
            time.sleep(0.002)
        for _ in range(n):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.005)
        _, err = process.communicate(timeout=20)
    assert process.returncode in (130, -signal.SIGINT)  # the second may come when all is over
    assert [*tmp_path.iterdir()] == []
    said = b"interrupted: SmolLM2-135M-Instruct-draft-q2_k.gguf was not written\n"
    assert err in ((said,) if n == 1 else (said, b""))
