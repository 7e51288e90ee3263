"""A real pair's recorded answers, in virtual time: what is promised is held."""

from pathlib import Path

import pytest

from scripts.replay import gains, load_curves, load_traces, table
from scripts.virtual_time import Curves, Trace, least, seconds_of
from specli.bench.contest import mean
from specli.errors import UsageError

TRACES = load_traces()
SIMPLE = Curves("simple", {1: 1.0, 64: 1.0}, {1: 0.1, 64: 0.1}, {1: 0.1, 64: 0.1})
RIGHT = Trace("a", "code", 0.0, (5, 6, 7), tuple(range(10, 30)), tuple(range(10, 30)), (0.9,) * 20)
WRONG = Trace("b", "code", 0.0, (5, 6, 7), RIGHT.answer, (1,) * 20, (0.02,) * 20)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("curves", load_curves(), ids=lambda curves: curves.name)
def test_auto_keeps_its_promise(curves: Curves, temperature: float) -> None:
    traces = [trace for trace in TRACES if trace.temperature == temperature]
    found = {
        category: gains([trace for trace in traces if trace.category == category], curves)
        for category in dict.fromkeys(trace.category for trace in traces)
    }
    numbers = {category: some for category, (_, some) in found.items()}
    assert len(numbers) == 5
    assert min(plain for plain, _, _ in numbers.values()) >= 1.05
    assert min(fixed for _, fixed, _ in numbers.values()) >= 1.0
    assert mean(fixed for _, fixed, _ in numbers.values()) >= 1.15
    assert mean(share for _, _, share in numbers.values()) >= 0.7


def test_time_is_what_the_curves_say() -> None:
    assert seconds_of(RIGHT, SIMPLE, 0) == pytest.approx(20.0)
    assert seconds_of(RIGHT, SIMPLE, 4) == pytest.approx(4 * (1.0 + 4 * 0.1))
    assert seconds_of(WRONG, SIMPLE, 1) == pytest.approx(20.0 + 19 * 0.1)  # the last needs no guess
    assert least(RIGHT, SIMPLE) == pytest.approx(1.0 + 19 * 0.1)
    assert least(WRONG, SIMPLE) == pytest.approx(20.0)
    assert seconds_of(RIGHT, SIMPLE, None) < seconds_of(RIGHT, SIMPLE, 4)


def test_a_table_has_a_row_for_each_category() -> None:
    lines = table([RIGHT, WRONG], SIMPLE)
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| code", "| geometric mean"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"name": "a", "target_s": 1}'])
def test_what_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    for load in (load_traces, load_curves):
        with pytest.raises(UsageError, match=r"r\.jsonl"):
            load(path)
