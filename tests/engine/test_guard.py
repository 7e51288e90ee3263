"""Rounds with guesses that bring less than plain ones are paused, each time for longer."""

import numpy as np

from specli.engine.guard import Guard, Guards
from specli.engine.types import Guess, Round

GUESS = Guess(1, None, 0.5)
PLAIN = Round((1,), (), 0, 0.0, 1.0, 0.0)


def speculative(seconds: float) -> Round:
    """Return a round of two tokens."""
    return Round((1, 2), (GUESS, GUESS), 1, 0.2, seconds - 0.2, 0.0)


def pauses(guard: Guard, seconds: float, n: int) -> list[bool]:
    """Play n rounds, with guesses where they are allowed; return which had to be plain."""
    forbidden = []
    for _ in range(n):
        forbidden.append(guard.forbids() or guard.asks())
        guard.observe(PLAIN if forbidden[-1] else speculative(seconds), 1.0, 1.0)
    return forbidden


def test_what_pays_well_is_never_paused() -> None:
    assert not any(pauses(Guard(), 1.0, 500))


def test_what_brings_less_is_paused_longer_and_longer() -> None:
    forbidden = pauses(Guard(), 2.2, 1000)
    assert [i for i in range(13) if forbidden[i]] == [8]
    assert all(forbidden[13:29])
    assert not any(forbidden[29:41])
    assert all(forbidden[41:73])
    assert sum(forbidden) > 900


def test_what_brings_little_more_is_compared_now_and_then_and_ever_more_seldom() -> None:
    forbidden = pauses(Guard(), 1.8, 2000)
    at = [i for i, plain in enumerate(forbidden) if plain]
    assert 6 <= len(at) <= 20
    assert at[0] == 8
    assert at[1] <= 45
    assert at[-1] - at[-2] > 300


def test_what_a_plain_round_tells_holds_for_the_rounds_before() -> None:
    guard = Guard()
    for _ in range(12):  # T(1) is believed to be twice what it is
        assert not guard.forbids()
        guard.observe(speculative(2.2), 2.0, 2.0)
    assert not guard.forbids()
    guard.observe(PLAIN, 2.0, 1.0)
    assert all(guard.forbids() for _ in range(16))


def test_a_machine_that_becomes_faster_does_not_make_a_gain_a_loss() -> None:
    guard = Guard()
    for i in range(600):
        assert not guard.forbids()
        assert not guard.asks()
        plain_s = 2.0 if i // 60 % 2 else 1.0
        guard.observe(speculative(plain_s * 2 / 2.1), plain_s, plain_s)


def test_n_grams_do_not_pause_for_what_a_draft_lost() -> None:
    for together in (False, True):
        guards = Guards(True, together)
        for _ in range(40):
            guards.begin(1.0)
            may_find = guards.may("ngram")
            guards.observe(speculative(3.0) if guards.may("draft") else PLAIN, 1.0)
            if not guards.may_draft:
                assert may_find is not together
                break
        else:
            raise AssertionError("it is never paused")


def test_a_gain_is_checked_once_even_where_it_looks_good() -> None:
    forbidden = pauses(Guard(), 1.2, 500)
    assert [i for i, plain in enumerate(forbidden) if plain] == [8]


def test_what_brings_more_by_and_large_is_not_paused_for_a_few_bad_rounds() -> None:
    guard, rng = Guard(), np.random.default_rng(1)
    n_paused = 0
    for _ in range(2000):
        if guard.forbids() or guard.asks():
            n_paused += 1
            guard.observe(PLAIN, 1.0, 1.0)
        else:  # now fast, now slow, in the mean 1.1 times as fast as plain decoding
            guard.observe(speculative(2.0 / 1.1 + float(rng.choice([-0.9, 0.9]))), 1.0, 1.0)
    assert n_paused < 100


def test_a_pause_is_short_again_after_a_good_while() -> None:
    guard = Guard()
    pauses(guard, 2.2, 200)
    while guard.forbids():
        guard.observe(PLAIN, 1.0, 1.0)
    assert not any(pauses(guard, 0.9, 60))
    forbidden = pauses(guard, 3.0, 60)
    runs = "".join("x" if plain else " " for plain in forbidden).split()
    assert 10 <= max(map(len, runs)) <= 16
