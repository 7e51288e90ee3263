"""Where and with what: hashes, the machine, energy."""

import hashlib
import os
from pathlib import Path

import pytest

from specli.bench.energy import EnergyMeter
from specli.bench.setup import describe, model_file, sha256_of
from specli.errors import Interrupted
from specli.models.store import Located
from specli.settings import SamplingSettings, Settings


def test_a_hash_is_kept_until_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"one")
    shares: list[float] = []

    def on_share(share: float) -> bool:
        shares.append(share)
        return True

    assert sha256_of(path, on_share) == hashlib.sha256(b"one").hexdigest()
    assert sha256_of(path, on_share) == hashlib.sha256(b"one").hexdigest()
    assert shares == [1.0]
    path.write_bytes(b"two")
    os.utime(path, ns=(1, 1))
    assert sha256_of(path) == hashlib.sha256(b"two").hexdigest()


def test_a_split_model_is_hashed_whole_and_can_be_interrupted(tmp_path: Path) -> None:
    for i in (1, 2):
        (tmp_path / f"m-0000{i}-of-00002.gguf").write_bytes(bytes([i]))
    first = tmp_path / "m-00001-of-00002.gguf"
    with pytest.raises(Interrupted):
        sha256_of(first, lambda _: False)
    assert sha256_of(first) == hashlib.sha256(b"\1\2").hexdigest()


def test_a_setup_says_all_but_what_runs_vary(tiny: Path) -> None:
    file = model_file(Located("t", tiny / "target.gguf"), "t")
    assert (file.name, file.label, len(file.sha256)) == ("target.gguf", "t", 64)
    assert file.size_bytes == (tiny / "target.gguf").stat().st_size
    assert "llama" in file.description
    settings = Settings(k=3, sampling=SamplingSettings(0.5, top_k=7), n_threads=1)
    setup = describe(file, [file], settings, "specli bench")
    assert setup.cpu
    assert setup.n_threads == 1
    assert setup.llama.startswith("llama-cpp-python 0.")
    assert setup.settings["sampling"]["top_k"] == 7
    assert "temperature" not in setup.settings["sampling"]
    assert "k" not in setup.settings


def zone(root: Path, name: str, energy: int) -> None:
    (root / name).mkdir(parents=True, exist_ok=True)
    (root / name / "energy_uj").write_text(f"{energy}\n")
    (root / name / "max_energy_range_uj").write_text("1000000000\n")


def test_energy_is_that_of_all_packages_and_survives_a_new_beginning(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", 999_000_000)
    zone(tmp_path, "intel-rapl:1", 5_000_000)
    zone(tmp_path, "intel-rapl:0:0", 7)  # the cores of the first, which are counted already
    meter = EnergyMeter(tmp_path)
    before = meter.read()
    zone(tmp_path, "intel-rapl:0", 1_000_000)
    zone(tmp_path, "intel-rapl:1", 6_500_000)
    assert meter.joules(before) == pytest.approx(2.0 + 1.5)
    (tmp_path / "intel-rapl:1/energy_uj").unlink()
    assert meter.joules(before) is None


def test_a_machine_that_does_not_tell_has_no_energy(tmp_path: Path) -> None:
    meter = EnergyMeter(tmp_path)
    assert meter.joules(meter.read()) is None
