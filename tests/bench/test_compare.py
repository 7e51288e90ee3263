"""Two files beside each other."""

from dataclasses import replace

import pytest

from specli.bench.compare import compare, unlike
from specli.bench.records import ModelFile, Records, Run, Setup
from specli.errors import UsageError

FILE = ModelFile("t.gguf", 10, sha256="a" * 64)
SETUP = Setup(*("CPU", 2, 1, "0.1", "", "llama", FILE, (FILE,), "bench"), settings={"seed": 1})


def records(speeds: list[float], setup: Setup = SETUP, prompt: str = "sha") -> Records:
    runs = [
        Run("auto", "code", "code-1", prompt, 5, 0.0, 1, 100, i, 100, 100 / speed, draft="d")
        for i, speed in enumerate(speeds)
    ]
    return Records((setup,), tuple(runs))


@pytest.mark.parametrize(
    ("b", "ratio", "beyond"),
    [
        ([10.0, 11.0, 12.0], 1.0, False),
        ([11.0, 11.9, 13.0], 1.08, False),  # inside of what the first varied
        ([5.0, 20.0, 21.0], 1.82, False),  # the first is inside of what the second varied
        ([14.0, 15.0, 16.0], 1.36, True),
        ([4.0, 5.0, 6.0], 0.45, True),
        ([12.1, 12.2, 12.3], 1.11, False),  # outside, but by less than chance is
    ],
)
def test_a_difference_is_beyond_the_spread_or_not(
    b: list[float], ratio: float, beyond: bool
) -> None:
    (difference,) = compare(records([10.0, 11.0, 12.0]), records(b))
    assert difference.ratio == pytest.approx(ratio, abs=0.006)
    assert difference.beyond == beyond


def test_only_what_both_ran_is_compared() -> None:
    a, b = records([10.0]), records([30.0], prompt="other")
    with pytest.raises(UsageError, match="no run in common"):
        compare(a, b)
    both = Records(a.setups, (*a.all, *b.all))
    (difference,) = compare(both, records([12.0]))
    assert difference.a.high == pytest.approx(10.0)
    assert "prompts: 1 of 2 are in both, and only these are compared" in unlike(both, a)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(SETUP, cpu="Other"), "machine: CPU, 2 cores and Other, 2 cores"),
        (replace(SETUP, n_threads=4), "threads: 1 and 4"),
        (replace(SETUP, target=replace(FILE, sha256="b" * 64)), "target: t.gguf aaaaaaaaaaaa and"),
        (replace(SETUP, drafts=()), "draft 1: t.gguf aaaaaaaaaaaa and no model"),
        (replace(SETUP, settings={"seed": 2}), "seed: 1 and 2"),
        (replace(SETUP, settings={"seed": True}), "seed: 1 and true"),
        (replace(SETUP, llama="newer"), "llama.cpp: llama and newer"),
    ],
)
def test_what_differs_is_named(other: Setup, said: str) -> None:
    (found,) = unlike(records([1.0]), records([1.0], other))
    assert found.startswith(said)


def test_answers_of_other_lengths_are_compared_with_a_warning() -> None:
    a, b = records([10.0]), records([12.0])
    b = Records(b.setups, tuple(replace(run, max_tokens=50) for run in b.runs()))
    assert unlike(a, b) == ["tokens of an answer: 100 and 50"]
    assert len(compare(a, b)) == 1


def test_date_and_command_may_differ() -> None:
    other = replace(SETUP, date="later", command="another")
    assert unlike(records([1.0]), records([1.0], other)) == []
