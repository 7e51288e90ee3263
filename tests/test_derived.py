"""Drafts made from models: sizes known beforehand, nothing half left whatever happens."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from specli import derived
from specli.backend.quantize import QUANTIZATIONS
from specli.derived import Making, check, name_of, size_in
from specli.errors import ModelError
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
    ],
)
def test_it_is_called_after_the_model(name: str, made: str) -> None:
    assert name_of(name, 4) == made


@pytest.mark.real
@pytest.mark.parametrize("bits", QUANTIZATIONS)
def test_its_size_is_known_beforehand(smollm2: Path, tmp_path: Path, bits: int) -> None:
    """Also where rows of 576 do not fit into blocks of 256."""
    place = tmp_path / "made.gguf"
    with closing(Making(smollm2, place, bits)) as making:
        shares = [*making.shares()]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    expected = size_in([read_header(smollm2)], bits)
    assert expected <= place.stat().st_size < expected + 100  # a key more, a rounded beginning
    assert [*tmp_path.iterdir()] == [place]


@pytest.mark.real
@pytest.mark.parametrize("n_shares", [0, 1, 100])
def test_what_is_stopped_leaves_nothing(smollm2: Path, tmp_path: Path, n_shares: int) -> None:
    making = Making(smollm2, tmp_path / "made.gguf", 2)
    for _ in zip(range(n_shares), making.shares(), strict=False):
        pass
    making.stop()
    making.close()
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "import os; open(os.sys.argv[2], 'w'); os.kill(os.getpid(), 11)",
            "failed with it: SIGSEGV",
        ),
        ("import sys; sys.exit('no room')", "no room"),
        ("import sys; sys.exit(3)", "failed with it: exit code 3"),
    ],
)
def test_what_fails_is_said_and_leaves_nothing(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    def start(_module: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    monkeypatch.setattr(derived, "start", start)
    with (
        closing(Making(tiny / "target.gguf", tmp_path / "made.gguf", 4)) as making,
        pytest.raises(ModelError, match=said),
    ):
        next(making.shares())
    assert [*tmp_path.iterdir()] == []


def test_a_link_stays_one(tiny: Path, tmp_path: Path) -> None:
    place, link = tmp_path / "made.gguf", tmp_path / "link.gguf"
    place.touch()
    link.symlink_to(place)
    check(tiny / "target.gguf", link, 4, replaces=True)
    with closing(Making(tiny / "target.gguf", link, 4)) as making:
        assert [*making.shares()]
    assert link.is_symlink()
    assert read_header(place).n_params == read_header(tiny / "target.gguf").n_params
