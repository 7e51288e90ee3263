"""specli bench report."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specli.bench.record_files import line_of
from tests.bench.test_page import SETUP, records
from tests.cli.conftest import Result

Specli = Callable[..., Result]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "r.jsonl"
    path.write_text("".join(map(line_of, [SETUP, *records().all])))
    return path


def test_a_page_and_plots(specli: Specli, file: Path, tmp_path: Path) -> None:
    done = specli("bench", "report", file, "--svg", "plots")
    assert (done.code, done.err) == (0, "")
    page, *plots = done.out.splitlines()
    assert page == "r.html"
    assert plots == [
        f"plots/r-{slug}.svg" for slug in ("throughput", "by-k-d", "positions", "gains", "passes")
    ]
    assert all((tmp_path / path).stat().st_size > 1000 for path in (page, *plots))


def test_what_cannot_be_is_one_line(
    specli: Specli, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert specli("bench", "report", "missing.jsonl").code == 2
    assert "not written over" in specli("bench", "report", file, "--out", file).err
    file.with_name("empty.jsonl").write_text("")
    assert "nothing to compare" in specli("bench", "report", "empty.jsonl").err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = specli("bench", "report", file)
    assert done.code == 1
    assert "hint: pip install matplotlib" in done.err
    assert not list(tmp_path.glob("*.html"))
