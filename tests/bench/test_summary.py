"""What runs of known speeds are said to mean."""

from collections.abc import Mapping

import pytest

from specli.bench.records import Rounds, Run
from specli.bench.summary import (
    Spread,
    Way,
    advise,
    by_position,
    joules_per_token,
    lines,
    time_split,
    verdict,
    ways,
)

PLAIN = {"code": [10.0, 10.0], "chat": [10.0, 10.0], "story": [10.0, 10.0]}


def runs(
    speeds: Mapping[str, list[float]],
    contestant: str = "plain",
    draft: str = "none",
    temperature: float = 0.0,
) -> list[Run]:
    """Return runs of 100 tokens in 40 rounds of 2 guesses; the speeds of a category are repeats."""
    rounds = Rounds((2,) * 40, (2, 1) * 20, (3, 2) * 20, (0.1,) * 40, (0.8,) * 40, (0.1,) * 40)
    return [
        Run(
            *(contestant, category, f"{category}-1", "sha", 5, temperature, 1, 100, repeat),
            tokens=100,
            seconds=100 / speed,
            draft=draft,
            rounds=rounds,
        )
        for category, some in speeds.items()
        for repeat, speed in enumerate(some)
    ]


def check(some: list[Run], way: Way | None, gain: float) -> None:
    found = advise(some)
    assert found
    assert found.way == way
    assert found.gain == pytest.approx(gain)


def test_a_line_pairs_runs_of_the_same_prompt_and_repeat() -> None:
    plain = runs({"code": [10.0, 20.0]})
    (line,) = lines(plain + runs({"code": [15.0, 40.0]}, "auto", "d"), 0.0)
    assert line.way == Way("d", "auto")
    assert line.plain == Spread(15.0, 10.0, 20.0)
    assert line.speed == Spread(27.5, 15.0, 40.0)
    assert line.ratio == Spread(1.75, 1.5, 2.0)
    assert line.acceptance == 0.75
    assert (line.tokens_per_round, line.mean_k) == (2.5, 2.0)


def test_a_run_without_its_plain_one_is_not_counted() -> None:
    (line,) = lines(runs({"code": [10.0]}) + runs({"code": [20.0, 90.0]}, "auto", "d"), 0.0)
    assert (line.n_pairs, line.ratio.high) == (1, 2.0)
    assert lines(runs(PLAIN), 0.0) == []
    assert lines(runs(PLAIN) + runs(PLAIN, "auto", "d"), 1.0) == []


def test_the_verdict_says_faster_slower_and_neither() -> None:
    some = runs(PLAIN) + runs(
        {"code": [17.4, 17.6], "chat": [8.4, 8.6], "story": [10.9, 11.1]}, "auto", "d"
    )
    assert verdict(lines(some, 0.0)) == (
        "worth it for code (1.75 times as fast) and story (1.10);"
        " slower for chat (0.85 times as fast)"
    )
    noisy = runs(PLAIN) + runs(
        {"code": [15.0, 20.0], "chat": [8.0, 12.0], "story": [10.9, 11.1]}, "auto", "d"
    )
    assert verdict(lines(noisy, 0.0)) == (  # story by chance: the others show how much there is
        "no clear difference for code (1.75 times as fast), chat (1.00) and story (1.10)"
    )


def test_one_run_of_each_tells_nothing_of_chance() -> None:
    some = runs({"code": [10.0]}) + runs({"code": [20.0]}, "auto", "d")
    said = verdict(lines(some, 0.0))
    assert said.startswith("measured once: code (2.00 times as fast); one run of each")
    assert "no clear difference" not in said
    advice = advise(some)
    assert advice
    assert (advice.verdict, advice.way) == ("unclear", None)


@pytest.mark.parametrize(
    ("a", "b", "way", "gain", "said"),
    [
        (15.0, 15.3, Way("a", "auto"), 1.5, "faster"),  # nearly as good, and came first
        (15.0, 20.0, Way("b", "auto"), 2.0, "faster"),
        (9.0, 8.0, None, 0.9, "slower"),
        (10.1, 5.0, None, 1.01, "unclear"),
    ],
)
def test_the_best_draft_is_advised_or_none(
    a: float, b: float, way: Way | None, gain: float, said: str
) -> None:
    some = runs({"code": [10.0, 10.1]}) + runs({"code": [a, a * 1.01]}, "auto", "a")
    some += runs({"code": [b, b * 1.01]}, "auto", "b")
    check(some, way, gain)
    advice = advise(some)
    assert advice
    assert advice.verdict == said


def test_auto_is_advised_before_a_fixed_number_that_is_hardly_better() -> None:
    some = runs(PLAIN) + runs({category: [20.4, 20.4] for category in PLAIN}, "k=4", "d")
    some += runs({category: [20.0, 20.0] for category in PLAIN}, "auto", "d")
    check(some, Way("d", "auto"), 2.0)
    assert [way.contestant for way in ways(some)] == ["auto", "k=4"]


def test_what_ran_on_part_of_the_categories_only_is_not_advised() -> None:
    some = runs(PLAIN) + runs({category: [11.0, 11.0] for category in PLAIN}, "auto", "d")
    some += runs({"code": [99.0]}, "k=8", "d")
    check(some, Way("d", "auto"), 1.1)
    assert advise(runs(PLAIN)) is None


def test_positions_and_times() -> None:
    some = runs({"code": [10.0]})
    assert by_position(some) == [1.0, 0.5]
    assert time_split(some) == pytest.approx({"draft": 0.1, "target": 0.8, "host": 0.1})
    assert joules_per_token(some) is None
