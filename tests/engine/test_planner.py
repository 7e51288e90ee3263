"""Never slower than plain, and as fast as the best fixed k: in virtual time, with known costs."""

from collections.abc import Mapping
from statistics import fmean

import numpy as np
import pytest

from specli.engine.acceptance import DRAWN_RATES, GREEDY_RATES, TRUE_RATES, Acceptance
from specli.engine.costs import CostCurve, ratios_of_rows
from specli.engine.fixed import FixedPlanner
from specli.engine.planner import AutoPlanner
from specli.engine.types import Guess, Planner, Round
from tests.fakes import Clock, FakeModel, FakeSampler, make_decoder

GREEDY = FakeSampler(temperature=0.0)
FLAT = {1: 1.0, 8: 1.3, 64: 3.0}  # bound by memory: more rows are almost free
STEPS = {1: 1.0, 2: 1.8, 3: 2.5, 4: 1.9, 5: 2.6, 6: 3.2, 7: 3.6, 8: 2.6, 9: 3.4, 16: 4.0, 64: 16.0}
STEEP = {1: 1.0, 64: 64.0}  # bound by arithmetic: nothing is to be had
CURVES = {"flat": FLAT, "steps": STEPS, "steep": STEEP}
CHEAP = {1: 0.1, 64: 1.0}
DEAR = {1: 0.6, 64: 6.0}


# An 8B model on a GPU: milliseconds, and what another number of tokens than before costs more.
GPU, SWITCH = {1: 4.4, 2: 4.8, 4: 5.4, 6: 6.5, 8: 7.3, 16: 9.0, 64: 15.0}, 2.0


def auto(
    target: Mapping[int, float], draft: Mapping[int, float] | None, switch_s: float = 0.0
) -> AutoPlanner:
    acceptance = {"draft": Acceptance(GREEDY_RATES), "ngram": Acceptance(TRUE_RATES)}
    curve = CostCurve(target, switch_s)
    return AutoPlanner(curve, CostCurve(draft) if draft else None, acceptance)


def tokens_per_second(
    clock: Clock,
    planner: Planner | int,
    target_s: Mapping[int, float],
    draft_s: Mapping[int, float],
    noise: float,
    *,
    sampler: FakeSampler = GREEDY,
    n: int = 400,
    skip: int = 64,
    switch_s: float = 0.0,
) -> float:
    """Return the rate after the first `skip` tokens. noise: 0 for a draft that is always right."""
    n_vocab = 40
    target = FakeModel(1, n_vocab, spread=4.0, n_ctx=10_000)
    draft = FakeModel(1, n_vocab, spread=4.0, noise=noise, n_ctx=10_000)
    target.n_batch = draft.n_batch = 64
    clock.times(target, target_s, switch_s)
    clock.times(draft, draft_s)
    decoder = make_decoder(target, draft, planner, sampler, 3)
    decoder.lookup = None  # a Markov chain of 40 tokens repeats itself more than texts do
    n_made, skipped, since = 0, 0, clock.now
    for event in decoder.generate([1, 2, 3], n):
        if isinstance(event, Round):
            n_made += len(event.tokens)
            if n_made <= skip:
                skipped, since = n_made, clock.now
    return (n_made - skipped) / (clock.now - since)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("draft_s", [CHEAP, DEAR], ids=["cheap", "dear"])
@pytest.mark.parametrize("noise", [0.0, 2.0, 4.0, 8.0, 100.0])
def test_auto_is_never_slower_than_plain_and_close_to_the_best_fixed_k(
    clock: Clock, curve: str, draft_s: dict[int, float], noise: float
) -> None:
    costs = CURVES[curve]
    assert tokens_per_second(clock, 0, costs, draft_s, noise) == pytest.approx(1.0)
    chosen = tokens_per_second(clock, auto(costs, draft_s), costs, draft_s, noise)
    assert chosen >= 0.97
    if noise < 4.0:  # a draft that is poor, not hopeless, takes longer than this text to find out
        fixed = [tokens_per_second(clock, k, costs, draft_s, noise) for k in (1, 2, 3, 5, 7, 15)]
        assert chosen >= (0.85 if draft_s is CHEAP else 0.8) * max(fixed)


def test_sampled_text_too(clock: Clock) -> None:
    for noise in (0.5, 1.0, 100.0):
        sampler = FakeSampler(1.0)
        ks = (1, 3, 7, 15)
        fixed = [
            tokens_per_second(clock, k, STEPS, CHEAP, noise, sampler=sampler, n=500) for k in ks
        ]
        planner = auto(STEPS, CHEAP)
        chosen = tokens_per_second(clock, planner, STEPS, CHEAP, noise, sampler=sampler, n=500)
        assert chosen >= 0.85 * max(1.0, *fixed)


@pytest.mark.parametrize("noise", [0.0, 1.0, 2.0, 3.0, 100.0])
def test_a_width_is_kept_where_another_one_is_dear(clock: Clock, noise: float) -> None:
    def speed(planner: Planner | int) -> float:
        return tokens_per_second(clock, planner, GPU, {1: 1.2}, noise, n=600, switch_s=SWITCH)

    chosen = speed(auto(GPU, {1: 1.2}, SWITCH))
    assert chosen >= 0.97 * speed(0)
    assert chosen >= 0.95 * speed(auto(GPU, {1: 1.2}))  # which does not know of the change
    assert chosen >= 0.9 * max(speed(k) for k in (1, 3, 5, 7, 15))


def test_the_first_rounds_are_as_good_as_the_later_ones(clock: Clock) -> None:
    """Time was cheap before any round had been seen, so each answer began with long drafts."""
    shares = []
    for noise in (0.5, 1.0, 2.0, 4.0):
        for sampler in (GREEDY, FakeSampler(1.0)):

            def speed(planner: Planner | int) -> float:
                given = clock, planner, GPU, {1: 1.2}, noise  # noqa: B023
                return tokens_per_second(*given, sampler=sampler, n=100, skip=0, switch_s=SWITCH)  # noqa: B023

            best = max(speed(k) for k in (1, 3, 5, 7, 15))
            shares.append(speed(auto(GPU, {1: 1.2}, SWITCH)) / best)
    assert fmean(shares) >= 0.94


def test_no_width_is_kept_for_a_draft_that_is_not_asked(clock: Clock) -> None:
    costs = GPU, {1: 1.2}
    planner, sampler = auto(*costs, SWITCH), FakeSampler(1.0)
    chosen = tokens_per_second(clock, planner, *costs, 4.0, sampler=sampler, switch_s=SWITCH, n=900)
    plain = tokens_per_second(clock, 0, *costs, 4.0, sampler=sampler, switch_s=SWITCH, n=900)
    assert chosen >= 0.97 * plain


def test_four_rows_are_taken_where_three_cost_more() -> None:
    planner = auto({1: 1.0, 2: 1.1, 3: 2.5, 4: 1.3, 5: 2.6, 64: 60.0}, {1: 0.01})
    for _ in range(50):
        round_of(planner, [0.9] * 8, right=2)
    assert round_of(planner, [0.95] * 8, right=3) == 3


def round_of(
    planner: AutoPlanner, confidences: list[float], right: int, host_s: float = 0.0
) -> int:
    """Play one round in which the draft offers guesses; return how many the planner took."""
    guesses: list[Guess] = []
    planner.begin(max(16, len(confidences)))
    for i, confidence in enumerate(confidences):
        if planner.choose(None, 1) != "draft":
            break
        guess = Guess(i, None, confidence)
        if not planner.keeps(guess):
            break
        guesses.append(guess)
    del guesses[planner.n_worth(guesses) :]
    n = min(right, len(guesses))
    host_s *= len(guesses) + 1
    planner.observe(Round((*range(n), -1), tuple(guesses), n, 0.01 * len(guesses), 1.0, host_s))
    return len(guesses)


def test_the_time_of_the_host_has_its_price_too() -> None:
    costs = {1: 1.0, 2: 1.05, 64: 4.15}
    ks = []
    for host_s in (0.0, 0.2):
        planner = auto(costs, {1: 0.05})
        ks.append(sum(round_of(planner, [0.93] * 16, 6, host_s) for _ in range(40)))
    assert ks[1] < ks[0]


def test_it_stops_where_the_draft_is_unsure_and_goes_on_where_it_is_sure() -> None:
    planner = auto({1: 1.0, 2: 1.2, 3: 1.4, 4: 1.6, 5: 1.8, 64: 14.0}, {1: 0.05})
    for _ in range(40):
        round_of(planner, [0.97, 0.97, 0.97, 0.3, 0.3], right=3)
    assert round_of(planner, [0.999] * 12, right=12) > round_of(planner, [0.97, 0.1], right=1)


def test_a_draft_that_is_always_right_guesses_as_many_as_a_decode_takes() -> None:
    planner = auto(FLAT, {1: 0.02})
    for _ in range(20):
        n = round_of(planner, [1.0] * 63, right=63)
    assert n == 63


def test_off_is_looked_at_again_and_drafting_comes_back(clock: Clock) -> None:
    planner = auto(FLAT, CHEAP)
    taken = [round_of(planner, [0.05], right=0) for _ in range(300)]
    assert sum(taken[100:]) <= 20  # a cheap look now and then
    assert sum(taken[100:]) >= 1
    for _ in range(200):
        round_of(planner, [0.999] * 8, right=8)
    assert round_of(planner, [0.999] * 8, right=8) >= 4


def test_looks_in_vain_become_rare() -> None:
    planner = auto(FLAT, CHEAP)
    looks = [i for i in range(2000) if round_of(planner, [0.05], right=0)]
    between = np.diff(looks)
    assert 4 < len(looks) < 60
    assert between[-1] > 200  # and ever more seldom


def test_no_probing_where_even_a_draft_that_is_always_right_would_not_pay() -> None:
    planner = auto(STEEP, DEAR)
    assert not any(round_of(planner, [1.0] * 4, right=4) for _ in range(500))


def test_drawn_guesses_are_never_dropped_for_what_came_after_them() -> None:
    """Were they, the accepted ones would no longer have the target's distribution."""
    from specli.engine.types import Dist

    q = Dist(np.array([0, 1], np.int32), np.array([0.5, 0.5]))
    planner = auto(FLAT, CHEAP)
    planner.begin(16)
    guesses = []
    for confidence, dist in ((0.9, None), (0.9, q), (0.9, None), (0.001, None)):
        planner.choose(None, 1)
        guess = Guess(0, dist, confidence)
        if not planner.keeps(guess):
            break
        guesses.append(guess)
    assert planner.n_worth(guesses) >= 2


def found(confidence: float, token: int = 1) -> Guess:
    return Guess(token, None, confidence, "ngram")


def reading_along(target: Mapping[int, float], draft: Mapping[int, float]) -> AutoPlanner:
    """Return a planner whose draft reads along what is found."""
    acceptance = {"draft": Acceptance(GREEDY_RATES), "ngram": Acceptance(TRUE_RATES)}
    costs = CostCurve(draft)
    return AutoPlanner(CostCurve(target), costs, acceptance, ratios_of_rows(costs))


def test_a_draft_that_agrees_with_what_is_wrong_is_soon_not_asked() -> None:
    planner = reading_along(FLAT, {1: 0.4, 64: 10.0})
    asked = []
    for _ in range(60):
        planner.begin(16)
        asked.append(planner.choose(found(0.7), 1) == "draft")
        guesses = [Guess(1, None, 0.8)] if asked[-1] and planner.keeps(Guess(1, None, 0.8)) else []
        planner.observe(Round((7,), tuple(guesses), 0, 0.4 * asked[-1], 1.0, 0.0))
    assert sum(asked[20:]) <= 4


def test_what_is_found_goes_on_where_the_draft_was_not_asked() -> None:
    useless = reading_along(FLAT, DEAR)
    for _ in range(200):
        round_of(useless, [0.05], right=0)
    useless.begin(16)
    assert [useless.choose(found(0.7), 1) for _ in range(3)] == ["found"] * 3


def test_a_draft_at_hand_is_asked_before_a_short_match_and_reads_it_along() -> None:
    planner = reading_along(FLAT, CHEAP)
    planner.begin(16)
    assert planner.choose(found(0.7), 1) == "draft"
    n_first = planner.n_along()
    assert n_first > 0
    assert planner.keeps(Guess(1, None, 0.99))
    assert planner.choose(found(0.7), 0) == "draft"  # that one was read along
    for _ in range(30):
        planner.begin(16)
        planner.choose(found(0.7), 1)
        planner.keeps(Guess(2, None, 0.99))  # the draft does not agree
    planner.begin(16)
    planner.choose(found(0.7), 1)
    assert planner.n_along() < n_first
    planner.begin(2)
    planner.choose(found(0.7), 1)
    assert planner.n_along() <= 1  # the round has no room for more


def test_what_is_found_needs_no_draft_that_is_far_behind_or_of_no_use() -> None:
    planner = auto(FLAT, DEAR)
    planner.begin(16)
    assert planner.choose(found(0.7), 500) == "found"
    planner.begin(16)
    assert planner.choose(found(0.7), None) == "found"
    useless = auto(FLAT, DEAR)
    for _ in range(200):
        round_of(useless, [0.05], right=0)
    useless.begin(16)
    assert useless.choose(found(0.7), 1) == "found"
    planner.begin(16)
    assert planner.choose(found(0.999), 1) == "found"  # a long copy


def test_a_draft_reads_a_prompt_for_the_texts_of_which_it_is_certain() -> None:
    acceptance = {"draft": Acceptance(DRAWN_RATES), "ngram": Acceptance(TRUE_RATES)}
    busy = {1: 0.08, 2: 0.16, 3: 0.19, 4: 0.22, 8: 0.3, 16: 0.34, 64: 0.9}  # usual texts gain 14 %
    planner = AutoPlanner(CostCurve(busy), CostCurve({1: 0.0126, 64: 0.4}), acceptance)
    planner.begin_answer()
    assert planner.reads(483, 200)  # takes 3 of 16 seconds
    planner.begin_answer()
    assert not planner.reads(483, 10)  # nothing can pay for it there
    for _ in range(3):
        planner.begin_answer()
        for _ in range(100):
            round_of(planner, [0.1], right=0)  # it is never certain, nor right
    planner.begin_answer()
    assert not planner.reads(483, 200)


def test_fixed_takes_k_of_the_draft() -> None:
    planner = FixedPlanner(3)
    planner.begin(10)
    assert [planner.choose(None, 1) for _ in range(5)] == ["draft"] * 3 + ["stop"] * 2
    planner.begin(10)
    assert planner.choose(Guess(0, None, 0.5, "ngram"), None) == "found"
    assert planner.choose(None, None) == "stop"
