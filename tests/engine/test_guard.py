"""Rounds with guesses that bring less than plain ones are paused, each time for longer."""

import numpy as np

from specli.engine.guard import Guard
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
        forbidden.append(guard.forbids(1.0) or guard.asks(1.0))
        guard.observe(PLAIN if forbidden[-1] else speculative(seconds))
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


def test_it_judges_by_what_plain_decoding_is_known_to_cost_now() -> None:
    guard = Guard()
    for _ in range(12):  # T(1) is believed to be twice what it is
        assert not guard.forbids(2.0)
        guard.observe(speculative(1.8))
    assert guard.forbids(0.8)
    assert all(guard.forbids(0.8) for _ in range(15))


def test_a_gain_is_checked_once_even_where_it_looks_good() -> None:
    forbidden = pauses(Guard(), 1.2, 500)
    assert [i for i, plain in enumerate(forbidden) if plain] == [8]


def test_what_brings_more_by_and_large_is_not_paused_for_a_few_bad_rounds() -> None:
    guard, rng = Guard(), np.random.default_rng(1)
    n_paused = 0
    for _ in range(2000):
        if guard.forbids(1.0) or guard.asks(1.0):
            n_paused += 1
            guard.observe(PLAIN)
        else:  # now fast, now slow, in the mean 1.1 times as fast as plain decoding
            guard.observe(speculative(2.0 / 1.1 + float(rng.choice([-0.9, 0.9]))))
    assert n_paused < 100


def test_a_pause_is_short_again_after_a_good_while() -> None:
    guard = Guard()
    pauses(guard, 2.2, 200)
    while guard.forbids(1.0):
        guard.observe(PLAIN)
    assert not any(pauses(guard, 0.9, 60))
    forbidden = pauses(guard, 3.0, 60)
    runs = "".join("x" if plain else " " for plain in forbidden).split()
    assert 10 <= max(map(len, runs)) <= 16
