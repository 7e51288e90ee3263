"""Drafts made from models: sizes known beforehand, nothing half left whatever happens."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from specli import child, derived
from specli.derived import Making, name_of, size_in
from specli.engine.decode import never
from specli.errors import Interrupted, ModelError, PairError, SpecliError, UsageError
from specli.models.header import read_header


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("demo", "demo-draft-q4_0.gguf"),
        ("llama-8b:q8_0", "llama-8b-draft-q4_0.gguf"),
        ("Qwen2.5-Coder-1.5B-Instruct-BF16", "Qwen2.5-Coder-1.5B-Instruct-draft-q4_0.gguf"),
        ("SmolLM2-135M-Instruct.Q4_1", "SmolLM2-135M-Instruct-draft-q4_0.gguf"),
        ("org/model:7b", "org-model-7b-draft-q4_0.gguf"),
        ("q8_0", "q8_0-draft-q4_0.gguf"),
        ("-q8_0", "-q8_0-draft-q4_0.gguf"),
        ("big-bf16-00001-of-00003.gguf", "big-draft-q4_0.gguf"),
    ],
)
def test_it_is_called_after_the_model(name: str, made: str) -> None:
    assert name_of(name, 4) == made


@pytest.mark.real
@pytest.mark.parametrize("bits", [2, 4, 6])
def test_its_size_is_known_beforehand(smollm2: Path, tmp_path: Path, bits: int) -> None:
    """Also where rows of 576 do not fit into blocks of 256."""
    place = tmp_path / "made.gguf"
    with closing(Making(smollm2, place, bits)) as making:
        shares = [*making.shares(never)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    expected = size_in([read_header(smollm2)], bits)
    assert expected <= place.stat().st_size < expected + 100  # a key more, a rounded beginning
    assert [*tmp_path.iterdir()] == [place]


@pytest.mark.real
@pytest.mark.parametrize("n_shares", [0, 1])
def test_what_is_stopped_leaves_nothing(smollm2: Path, tmp_path: Path, n_shares: int) -> None:
    making = Making(smollm2, tmp_path / "made.gguf", 2)
    for _ in zip(range(n_shares), making.shares(never), strict=False):
        pass
    making.stop()
    making.close()
    assert [*tmp_path.iterdir()] == []


def started(code: str) -> Callable[..., subprocess.Popen[bytes]]:
    """Return what starts other Python code in place of the quantizer."""

    def start(_module: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return start


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("import os; os.kill(os.getpid(), 11)", ModelError, "failed with it: SIGSEGV"),
        ("import sys; sys.exit('no such type')", ModelError, "no such type"),
        ("import sys; sys.exit(3)", ModelError, "failed with it: exit code 3"),
        ("import sys; sys.exit('x: iostream error')", SpecliError, r"made\.gguf: cannot be writ"),
    ],
)
def test_what_fails_is_said_and_leaves_nothing(
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    kind: type[SpecliError],
    said: str,
) -> None:
    opens = "import sys; open(sys.argv[2], 'w').close(); "
    monkeypatch.setattr(derived, "start", started(opens + code))
    with (
        closing(Making(tiny / "target.gguf", tmp_path / "made.gguf", 4)) as making,
        pytest.raises(kind, match=said),
    ):
        next(making.shares(never))
    assert [*tmp_path.iterdir()] == []


def test_ctrl_c_ends_it(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it comes before, between, or after the last tensor."""
    asked: list[bool] = []

    def later() -> bool:
        asked.append(True)
        return len(asked) > n_before

    for n_before in range(6):
        asked.clear()
        code = "import sys; open(sys.argv[2], 'w').close(); print('1 3\\n2 3\\n3 3')"
        monkeypatch.setattr(derived, "start", started(code))
        with (
            closing(Making(tiny / "target.gguf", tmp_path / "made.gguf", 4)) as making,
            pytest.raises(Interrupted, match=r"made\.gguf was not written")
            if n_before < 5
            else nullcontext(),
        ):
            for _ in making.shares(later):
                pass
        assert len([*tmp_path.iterdir()]) == (n_before == 5)


def test_what_nobody_waits_for_removes_what_it_wrote(smollm2: Path, tmp_path: Path) -> None:
    place = tmp_path / "made.gguf"
    process = child.start("specli.backend.quantize", str(smollm2), str(place), "2")
    assert process.stdout
    assert process.stdout.readline().startswith(b"1 ")
    child.close_pipes(process)
    assert process.wait(30) == 1
    assert not place.exists()


def test_a_file_that_came_meanwhile_stays(tiny: Path, tmp_path: Path) -> None:
    place = tmp_path / "made.gguf"
    with closing(Making(tiny / "target.gguf", place, 4)) as making:
        making.check()
        shares = making.shares(never)
        next(shares)
        place.write_text("mine")
        with pytest.raises(UsageError, match="exists already"):
            list(shares)
    assert place.read_text() == "mine"
    assert [*tmp_path.iterdir()] == [place]


def test_what_cannot_rewind_is_no_draft(tiny: Path, tmp_path: Path) -> None:
    for name in ("recurrent", "hybrid"):
        with pytest.raises(PairError, match="cannot drop tokens"):
            Making(tiny / f"{name}.gguf", tmp_path / "made.gguf", 4).check()


def test_a_link_stays_one(tiny: Path, tmp_path: Path) -> None:
    place, link = tmp_path / "made.gguf", tmp_path / "link.gguf"
    place.touch()
    link.symlink_to(place)
    with closing(Making(tiny / "target.gguf", link, 4, replaces=True)) as making:
        making.check()
        assert [*making.shares(never)]
    assert link.is_symlink()
    assert read_header(place).n_params == read_header(tiny / "target.gguf").n_params
    assert place.stat().st_size == making.made_bytes
