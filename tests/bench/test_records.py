"""Records: what is written is read again, and a line that was cut does no harm."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specli.bench.record_files import Recorder, line_of, load
from specli.bench.records import Foresight, ModelFile, Passes, Records, Rounds, Run, Setup, columns
from specli.bench.report import report
from specli.engine.types import Guess, Round
from specli.errors import UsageError
from tests.test_project import ROOT

FILE = ModelFile("t.gguf", 10, sha256="ab", label="t")
SETUP = Setup(
    *("CPU", 2, 1, "0.1", "", "llama", FILE, (FILE,), "bench"),
    settings={"seed": 1, "stops": []},
    devices=("GPU",),
)
RUN = Run(
    *("k=2", "code", "code-1", "sha", 5, 0.0, 7, 3, 0),
    tokens=3,
    seconds=0.5,
    stats={"draft_n": 2},
    draft="t",
    k=2,
    energy_j=1.5,
    rounds=Rounds((2,), (2,), (3,), (0.1,), (0.3,), (0.1,), ("dn",)),
)
ALL = (RUN, Passes("", {1: 0.1, 64: 2.0}, 0.01, "t"), Foresight("code", "code-1", 3, (1,), (0,)))


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.jsonl", SETUP)
    for record in ALL:
        recorder.write(record)
    assert load(tmp_path / "r.jsonl") == Records((SETUP,), ALL)


def test_each_setup_stands_once_before_what_was_made_so(tmp_path: Path) -> None:
    other = replace(SETUP, commit="later")
    for setup in (SETUP, other):
        Recorder(tmp_path / "r.jsonl", setup).write(RUN)
    assert load(tmp_path / "r.jsonl") == Records((SETUP, other), (RUN, RUN))


@pytest.mark.parametrize("lost", [1, 2, 200])
def test_a_last_line_that_was_cut_does_not_count(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "r.jsonl"
    recorder = Recorder(path, SETUP)
    for _ in range(2):
        recorder.write(RUN)
    path.write_bytes(path.read_bytes()[:-lost])
    n = 2 if lost == 1 else 1  # without its line break alone it is whole
    assert len(load(path).all) == n
    Recorder(path, SETUP).write(RUN)
    assert load(path) == Records((SETUP, SETUP), (RUN,) * (n + 1))


def test_a_cut_inside_a_character(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Recorder(path, SETUP).write(replace(RUN, prompt_id="ü"))
    path.write_bytes(path.read_bytes() + b'{"schema":2,"kind":"run","prompt_id":"\xc3')
    assert len(load(path).all) == 1
    assert load(path).is_cut


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.jsonl: cannot be read: No such file"):
        load(tmp_path / "none.jsonl")


def test_columns_keep_every_round() -> None:
    guesses = (Guess(1, None, 1.0, "ngram"), Guess(2, None, 1.0, "draft"))
    rounds = [Round((1, 9), guesses, 1, 0.1, 0.2, 0.3), Round((4,), (), 0, 0.0, 0.2, 1e-7)]
    assert columns(rounds) == Rounds(
        (2, 0), (1, 0), (2, 1), (0.1, 0.0), (0.2, 0.2), (0.3, 0.0), ("nd", "")
    )
    assert columns([]) == Rounds()


@pytest.mark.parametrize(
    "name", ["bf16-abreast", "bf16-present", "bf16", "q4_k_m", "hopeless-draft"]
)
def test_the_committed_pages_are_made_of_the_records_beside_them(name: str) -> None:
    path = ROOT / "docs/benchmarks" / f"qwen-coder-{name}.jsonl"
    assert report(path.stem, load(path)) == path.with_suffix(".md").read_text()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"seconds": 0.0}, {"seconds": -1.0}, {"seconds": float("nan")}, {"seconds": "1"}),
        *({"tokens": 0}, {"tokens": 10**400}, {"tokens": "3"}, {"temperature": float("inf")}),
        *({"category": None}, {"category": "a\x1b"}, {"category": "\ud800"}, {"contestant": 5}),
    ],
)
def test_a_run_that_cannot_be_reckoned_with_is_no_record(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    path = tmp_path / "r.jsonl"
    line = json.loads(line_of(RUN)) | wrong
    path.write_text(line_of(SETUP) + json.dumps(line) + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"r\.jsonl, line 2: is no record"):
        load(path)


def test_json_too_deep_to_read_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("[" * 200_000 + "\n")
    with pytest.raises(UsageError, match="line 1: is no record"):
        load(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": None},
        {"devices": [5]},
        {"devices": 5},
        {"memory_bytes": "much"},
        {"target": {"name": "t", "size_bytes": "large"}},
        {"drafts": [{"name": 1, "size_bytes": 2}]},
        {"kind": "passes", "category": "", "target_s": {"1": 0}, "draft_s": 0.0},
        {"kind": "passes", "category": "", "target_s": {"1": "soon"}, "draft_s": 0.0},
    ],
    ids=str,
)
def test_a_setup_or_passes_of_wrong_types_are_no_records(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    path = tmp_path / "r.jsonl"
    line = {"schema": 2, **wrong} if "kind" in wrong else json.loads(line_of(SETUP)) | wrong
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"r\.jsonl, line 1: is no record"):
        load(path)
