"""The stopping problem: what plans promise."""

import numpy as np
import pytest

from specli.engine.acceptance import N_BINS
from specli.engine.costs import N_MAX
from specli.engine.plan import HORIZON, solve

GUESS_S = 0.015
WIDTHS = np.arange(1, N_MAX + 1)
SECONDS = (0.08 + 0.012 * WIDTHS).astype(np.float64)
SURE = np.eye(N_BINS)[-1], np.ones(N_BINS)  # only guesses of the last bin, all of them right


@pytest.mark.parametrize("surest", [1.0, 0.7, 0.5])
def test_what_sure_guesses_are_worth_changes_what_is_bought_not_what_is_counted(
    surest: float,
) -> None:
    price = 20.0
    plan = solve(WIDTHS, np.multiply(-price, SECONDS), price, GUESS_S, SURE, HORIZON, surest)
    # The next guess costs 0.027 s, 0.54 tokens.
    n = HORIZON if surest > 0.54 else 0
    assert plan.rate == pytest.approx((n + 1) / (n * GUESS_S + SECONDS[n]))
    assert plan.surest == surest


def test_unsure_guesses_are_worth_a_token_whatever_sure_ones_are() -> None:
    outlook = np.eye(N_BINS)[3], np.full(N_BINS, 0.7)
    plans = [
        solve(WIDTHS, np.multiply(-8.0, SECONDS), 8.0, GUESS_S, outlook, HORIZON, surest)
        for surest in (1.0, 0.5)
    ]
    assert plans[0].go == plans[1].go
