"""Statistics of an answer: what speculation is said to have brought."""

from dataclasses import replace

import pytest

from specli.engine.stats import Stats
from specli.engine.types import Costs, Guess, Round

GUESS = Guess(1, None, 0.5)


def stats(*rounds: Round, plain_s: float) -> Stats:
    """Return the statistics of some rounds, where a plain one is believed to take so long."""
    found = Stats("draft", costs=Costs({1: plain_s}, 0.1))
    for one in rounds:
        found.add(one)
    return found


def plain(seconds: float) -> Round:
    """Return a round that nobody guessed in."""
    return Round((1,), (), 0, 0.0, seconds, 0.0)


def drafted(n_accepted: int, seconds: float) -> Round:
    """Return a round with two guesses."""
    return Round((1,) * (n_accepted + 1), (GUESS, GUESS), n_accepted, 0.2, seconds - 0.2, 0.0)


def test_the_gain_is_that_over_as_many_plain_rounds() -> None:
    assert stats(drafted(2, 1.5), drafted(1, 1.5), plain_s=1.0).gain == pytest.approx(5 / 3)


def test_plain_rounds_took_as_long_as_they_took() -> None:
    """Once T(1) was measured on a busy machine, and plain rounds were said to be gains."""
    assert stats(*[plain(1.0)] * 30, plain_s=1.8).gain == pytest.approx(1.0)
    found = stats(*[plain(1.0)] * 30, drafted(1, 1.6), plain_s=1.6)
    assert found.gain == pytest.approx(33.2 / 31.6, rel=0.02)


def test_no_gain_is_above_the_tokens_of_a_round() -> None:
    found = stats(*[drafted(0, 1.0)] * 9, drafted(1, 1.0), plain_s=1.8)
    assert found.gain == pytest.approx(1.1)


def test_a_look_at_the_draft_that_came_to_nothing_is_no_plain_round() -> None:
    look = Round((1,), (), 0, 0.5, 1.0, 0.0)
    assert stats(look, plain(1.0), plain_s=1.0).gain == pytest.approx(2 / 2.5)


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert Stats("draft").gain is None
    assert stats(plain_s=1.0).gain is None


@pytest.mark.parametrize(
    ("n_rounds", "host_s", "lost"), [(3, 0.0, False), (5, 0.0, True), (5, 0.3, False)]
)
def test_drafts_that_took_longer_than_they_can_have_saved_lost(
    n_rounds: int, host_s: float, lost: bool
) -> None:
    """Whatever a plain round takes: no longer than these without the 0.2 s of their drafts."""
    nothing = replace(drafted(0, 1.0), host_s=host_s)
    found = stats(replace(drafted(1, 1.0), host_s=host_s), *[nothing] * (n_rounds - 1), plain_s=1.0)
    assert found.lost is lost
    assert not stats(plain(1.0), plain_s=1.0).lost
