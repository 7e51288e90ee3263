"""A draft that does not pay is looked at again, seldom and at little cost."""

from itertools import pairwise

import pytest

from specli.engine.acceptance import GREEDY_RATES, Acceptance
from specli.engine.costs import CostCurve
from specli.engine.looks import Looks
from specli.engine.planner import AutoPlanner
from specli.engine.types import Guess, Round

PLAIN_S = 0.05
GUESS = Guess(1, None, 0.5)


def plain_rounds(looks: Looks, n: int) -> None:
    for _ in range(n):
        looks.observe(Round((0,), (), 0, 0.0, PLAIN_S, 0.0), False, PLAIN_S)


def a_look(looks: Looks, seconds: float, n_tokens: int = 1) -> None:
    done = Round((1,) * n_tokens, (GUESS,), n_tokens - 1, 0.01, seconds - 0.01, 0.0)
    looks.observe(done, True, PLAIN_S)


def rounds_until_due(looks: Looks, loss_s: float) -> int:
    for n in range(10_000):
        if looks.is_due(loss_s):
            return n
        plain_rounds(looks, 1)
    raise AssertionError("it never looks again")


def test_the_less_a_look_loses_the_sooner_it_comes() -> None:
    waits = [rounds_until_due(Looks(), loss_s) for loss_s in (0.001, 0.01, 0.03)]
    assert 0 < waits[0] < waits[1] < waits[2]


def test_after_a_look_in_vain_the_next_one_waits_twice_as_long() -> None:
    looks, waits = Looks(), []
    for _ in range(4):
        waits.append(rounds_until_due(looks, 0.01))
        a_look(looks, 0.08)
        assert not looks.is_due(0.01)
    assert [b / a for a, b in pairwise(waits)] == pytest.approx([2] * 3, abs=0.1)


def test_looks_that_pay_go_on() -> None:
    looks = Looks()
    rounds_until_due(looks, 0.01)
    for _ in range(20):
        a_look(looks, 0.08, n_tokens=2)
        assert looks.is_due(0.01)


def test_guesses_that_pay_and_a_new_answer_forget_what_was_in_vain() -> None:
    first = rounds_until_due(Looks(), 0.01)
    for forget in (
        lambda looks: looks.observe(Round((1, 1), (GUESS,), 1, 0.01, 0.06, 0.0), False, PLAIN_S),
        Looks.begin,
    ):
        looks = Looks()
        for _ in range(3):
            rounds_until_due(looks, 0.01)
            a_look(looks, 0.08)
        forget(looks)
        assert rounds_until_due(looks, 0.01) == first


def test_rounds_that_n_grams_guessed_do_not_count() -> None:
    looks = Looks()
    for _ in range(1000):
        looks.observe(Round((1, 1), (GUESS,), 1, 0.0, 0.06, 0.0), False, PLAIN_S)
    assert not looks.is_due(0.001)


# A fast CPU, measured: what a draft reads, having been off, costs 1.6 ms a token.
TARGET = {1: 0.049, 2: 0.062, 3: 0.074, 4: 0.082, 6: 0.098, 8: 0.111, 16: 0.151, 64: 0.382}
DRAFT = {1: 0.011, 2: 0.015, 4: 0.015, 8: 0.022, 16: 0.030, 32: 0.054, 64: 0.099}


def play(planner: AutoPlanner, draft: CostCurve, rights: list[bool], confidence: float) -> float:
    """Play a text whose guesses are right or not at each position; return its seconds."""
    target = CostCurve(TARGET)
    at, n_held, seconds = 0, 0, 0.0
    while at < len(rights):
        planner.begin(len(rights) - at)
        guesses: list[Guess] = []
        draft_s = 0.0
        while planner.choose(None, at + len(guesses) + 1 - n_held) == "draft":
            draft_s += draft.at(at + len(guesses) + 1 - n_held)
            n_held = at + len(guesses) + 1
            guess = Guess(1, None, confidence)
            if not planner.keeps(guess):
                break
            guesses.append(guess)
        del guesses[planner.n_worth(guesses) :]
        n = 0
        while n < len(guesses) and at + n < len(rights) and rights[at + n]:
            n += 1
        n_held = min(n_held, at + n + 1)
        at += n + 1
        target_s = target.at(len(guesses) + 1)
        planner.observe(Round((*[1] * n, 0), tuple(guesses), n, draft_s, target_s, 0.0))
        seconds += draft_s + target_s
    return seconds


def test_drafting_comes_back_though_the_draft_has_fallen_far_behind() -> None:
    draft = CostCurve(DRAFT)
    planner = AutoPlanner(CostCurve(TARGET), draft, {"draft": Acceptance(GREEDY_RATES)})
    poor = play(planner, draft, [False] * 80, 0.6)
    assert poor < 80 * TARGET[1] * 1.15
    good = play(planner, draft, [True] * 600, 0.6)
    assert good < 600 * TARGET[1] * 0.75


def test_a_hopeless_draft_costs_little() -> None:
    draft = CostCurve(DRAFT)
    planner = AutoPlanner(CostCurve(TARGET), draft, {"draft": Acceptance(GREEDY_RATES)})
    play(planner, draft, [False] * 64, 0.2)
    assert play(planner, draft, [False] * 400, 0.2) < 400 * TARGET[1] / 0.97


@pytest.mark.parametrize(("n_left", "looks"), [(16, False), (1000, True)])
def test_nothing_is_read_for_a_look_that_the_rest_of_an_answer_cannot_pay_for(
    n_left: int, *, looks: bool
) -> None:
    """1.5B in Q4_K_M: 0.5 s were read for the last guesses of an answer of 9 s."""
    target = CostCurve({1: 0.040, 2: 0.066, 4: 0.109, 8: 0.249, 64: 0.928})
    draft = CostCurve({1: 0.011, 64: 0.19})
    planner = AutoPlanner(target, draft, {"draft": Acceptance(GREEDY_RATES)})
    choices = set()
    for _ in range(600):
        planner.begin(n_left)
        choices.add(planner.choose(None, 183))
        planner.observe(Round((1,), (), 0, 0.0, target.at(1), 0.0))
    assert ("draft" in choices) == looks
