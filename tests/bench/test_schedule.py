"""What runs in which order, and what of it fits into a time."""

import pytest

from specli.bench.prompts import Prompt, load_prompts
from specli.bench.schedule import SWEPT, Schedule, Speeds, chosen, contestants, fitted

PROMPTS = tuple(Prompt(f"{c}-{i}", c, "...") for c in ("code", "story") for i in (1, 2, 3))


def test_a_prompt_of_each_category_in_turn_and_orders_that_change() -> None:
    schedule = Schedule(contestants(["d"], None), chosen(PROMPTS, 2), (0.0,), 9, 2)
    parts = list(schedule.parts())
    assert [p.prompt.id for p in parts[:4]] == ["code-1", "story-1", "code-2", "story-2"]
    assert [(p.repeat, p.contestants[0].name) for p in parts] == [
        *((0, "plain"), (0, "auto"), (0, "plain"), (0, "auto")),
        *((1, "auto"), (1, "plain"), (1, "auto"), (1, "plain")),
    ]


def test_sweeps_take_every_draft() -> None:
    found = contestants(["a", "ngram"], None, SWEPT)
    assert [c.name for c in found[:4]] == ["plain", "auto", "k=1", "k=2"]
    assert len(found) == 1 + 2 * 9
    assert [c.name for c in contestants(["a"], 4, [3])] == ["plain", "k=4", "auto", "k=3"]
    assert [c.name for c in contestants(["a"], 4)] == ["plain", "k=4"]


SPEEDS = Speeds(prompt_s=0.01, token_s=0.1, of_draft_s={"d": 0.01})
BOTH = dict.fromkeys((p.id for p in PROMPTS), 100)
LENGTHS = dict.fromkeys((p.id for p in load_prompts()), 100)


@pytest.mark.parametrize(
    ("budget_s", "n_prompts", "fit", "max_tokens"),
    [
        *((1e6, 12, 3, 96), (300, 6, 3, 64), (160, 6, 2, 48), (70, 6, 1, 32), (40, 4, 1, 32)),
        (0, 1, 0, 32),
    ],
)
def test_as_much_as_fits(budget_s: float, n_prompts: int, fit: int, max_tokens: int) -> None:
    whole = Schedule(contestants(["d"], None), chosen(load_prompts(), 5), (0.0,), 128, 3)

    def seconds(schedule: Schedule) -> float:
        return SPEEDS.seconds(schedule, LENGTHS)

    smaller, said = fitted(whole, seconds, budget_s)
    assert (len(smaller.prompts), smaller.max_tokens) == (n_prompts, max_tokens)
    assert smaller.repeats == whole.repeats  # for where it goes faster than expected
    assert said.startswith(f"{n_prompts} of 30 prompts up to 3 times each, {max_tokens} tokens")
    assert ("left out" in said) == (n_prompts < 6)
    assert budget_s == 0 or seconds(smaller) * fit <= budget_s


def test_what_was_asked_for_is_never_exceeded() -> None:
    whole = Schedule(contestants(["d"], None), PROMPTS[:1], (0.0,), 5, 1)
    assert fitted(whole, lambda _: 1.0, 100.0)[0] == whole


def test_answers_are_as_long_as_they_were_wanted() -> None:
    whole = Schedule(contestants(["d"], None), PROMPTS, (0.0,), 200, 3)
    smaller, said = fitted(whole, lambda s: SPEEDS.seconds(s, {**LENGTHS, **BOTH}), 1.0, 200)
    assert smaller.max_tokens == 200
    assert len(smaller.prompts) == 1
    assert "200 tokens an answer; left out: code; even that takes longer" in said
