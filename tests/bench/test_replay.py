"""A real pair's recorded answers, in virtual time: what is promised is held."""

from dataclasses import replace
from pathlib import Path

import pytest

from scripts.replay import FOLDER, gains, in_session, load_curves, load_traces, table
from scripts.virtual_time import Curves, Trace, least, seconds_of
from specli.bench.contest import mean
from specli.errors import UsageError

TRACES = load_traces()
OTHERS = load_traces(FOLDER / "replay-other-prompts.jsonl")
# Qwen2.5-Coder 1.5B Q4_K_M and 0.5B Q4_0 on two cores: more tokens in a decode hardly pay.
STEEP = Curves(
    "steep",
    {1: 0.043, 2: 0.066, 3: 0.085, 4: 0.098, 6: 0.146, 8: 0.227, 16: 0.274, 32: 0.458, 64: 0.818},
    {1: 0.0163, 2: 0.0217, 4: 0.0281, 8: 0.0459, 16: 0.0673, 32: 0.1247, 64: 0.2188},
    {1: 0.0155, 2: 0.0295, 4: 0.0389, 8: 0.0612, 16: 0.0931, 32: 0.175, 64: 0.3255},
)
# The same on another machine: four tokens in a decode pay, eight do not, thirty-two do.
STEEPER = replace(
    STEEP,
    name="steeper",
    target_s={1: 0.039, 2: 0.066, 4: 0.109, 8: 0.249, 16: 0.314, 32: 0.541, 64: 0.928},
)
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


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_answers_to_other_prompts_gain_too(temperature: float) -> None:
    some = [trace for trace in OTHERS if trace.temperature == temperature]
    numbers = [
        gains([trace for trace in some if trace.category == category], load_curves()[0])[1]
        for category in dict.fromkeys(trace.category for trace in some)
    ]
    assert len(numbers) == 5
    assert min(plain for plain, _, _ in numbers) >= 1.3
    assert mean(fixed for _, fixed, _ in numbers) >= 1.05


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_answer_is_not_slower_for_those_before_it(temperature: float) -> None:
    """Other kinds of text, of which the last one says little."""
    some = [trace for trace in (*TRACES, *OTHERS) if trace.temperature == temperature]
    assert in_session(some, load_curves()[0]) >= 0.99


# Edits and extraction gain even there.
NEW_TEXT = [trace for trace in TRACES if trace.category in ("code", "chat", "story")]


@pytest.mark.parametrize(
    "trace", [*NEW_TEXT, *OTHERS], ids=lambda trace: f"{trace.prompt_id}-{trace.temperature:g}"
)
def test_no_answer_is_much_slower_where_guesses_are_dear(trace: Trace) -> None:
    assert seconds_of(trace, STEEP, 0) / seconds_of(trace, STEEP, None) >= 0.96


@pytest.mark.parametrize("times", [1.0, 1.25, 1.5, 2.0])
def test_a_busy_start_does_not_mislead_for_long(times: float) -> None:
    """T(1) is believed too dear, as if single tokens had been measured in a busy moment."""
    believed = replace(STEEP, target_s={**STEEP.target_s, 1: times * STEEP.target_s[1]})
    for category in ("code", "chat", "story"):
        some = [trace for trace in TRACES if trace.category == category]
        plain = mean(seconds_of(trace, STEEP, 0) for trace in some)
        auto = mean(seconds_of(trace, STEEP, None, believed) for trace in some)
        assert plain / auto >= 0.97


@pytest.mark.parametrize("curves", [*load_curves(), STEEP, STEEPER], ids=lambda curves: curves.name)
def test_what_few_sizes_cost_is_enough_to_begin_with(curves: Curves) -> None:
    """Within a second a start measures no more than these; prompts tell of the others."""
    few = {n: curves.target_s[n] for n in (1, 2, 4)} | {8: 1.1 * curves.target_s[8]}
    believed = replace(curves, target_s=few, draft_s={n: curves.draft_s[n] for n in (1, 2, 4, 8)})
    for category in ("edit", "extract"):
        some = [t for t in TRACES if t.category == category and t.temperature == 0.0]
        known_s = mean(seconds_of(trace, curves, None) for trace in some)
        assert mean(seconds_of(trace, curves, None, believed) for trace in some) <= 1.05 * known_s


@pytest.mark.parametrize(("category", "least"), [("extract", 1.2), ("code", 0.97), ("story", 0.96)])
def test_a_hopeless_draft_does_not_keep_n_grams_from_guessing(category: str, least: float) -> None:
    curves = load_curves()[0]
    some = [
        replace(trace, guesses=(-7,) * len(trace.answer), confidences=(0.05,) * len(trace.answer))
        for trace in TRACES
        if trace.category == category and trace.temperature == 0.0
    ]
    plain = mean(seconds_of(trace, curves, 0) for trace in some)
    assert plain / mean(seconds_of(trace, curves, None) for trace in some) >= least


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
