"""What rounds of guesses are worth: a problem of optimal stopping, solved backwards."""

from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from specli.engine.costs import N_MAX

HORIZON = N_MAX - 1  # most guesses that are planned for
_N_STEPS = 32
# How often confidences of each bin come, and their acceptance, (n_bins,) each.
Outlook: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]
_GRID = np.linspace(0.0, 1.0, _N_STEPS + 1)  # probabilities that all guesses so far are right
_NEVER = [-inf] * len(_GRID)


@dataclass(frozen=True, slots=True)
class Plan:
    """What rounds are worth, by the number of guesses so far, in tokens.

    widths: tokens decoded for n + 1 that are wanted, (N_MAX,). stop: the value of a round that ends
    with n guesses, (N_MAX,). go: of one more guess, HORIZON + 1 lists of values on a grid of the
    probability that all so far are right. rate: the tokens per second of rounds that go by it.
    surest: what a right guess of the last bin is worth, in tokens.
    """

    widths: NDArray[np.int_]
    stop: NDArray[np.float64]
    go: list[list[float]]
    rate: float
    surest: float = 1.0

    def going_on(self, n: int, p: float) -> float:
        """Return the value of one more guess after n that are all right with probability p."""
        at, values = p * _N_STEPS, self.go[n]
        below = min(int(at), _N_STEPS - 1)
        return values[below] + (at - below) * (values[below + 1] - values[below])


def solve(
    widths: NDArray[np.int_],
    stop: NDArray[np.float64],
    price: float,
    guess_s: float,
    outlook: Outlook | None,
    horizon: int,
    surest: float = 1.0,
) -> Plan:
    """Return the plan by which a model's guesses are bought, up to the horizon.

    price: tokens that a second is worth. guess_s: seconds that a guess takes. outlook: None
    where no model guesses. surest: what a right guess of the last bin is worth, in tokens.
    """
    go = [_NEVER] * (HORIZON + 1)
    n_right = np.zeros(len(_GRID))  # guesses that will be right, beyond those so far
    worth = np.zeros(len(_GRID))  # of those
    if outlook is not None:
        weights, rates = outlook
        at = rates[:, None] * _GRID  # p a, (n_bins, n_grid)
        won = at.copy()  # what these are worth
        won[-1] *= surest
        following = np.full(len(_GRID), stop[horizon])
        for n in range(horizon - 1, -1, -1):
            values = won + np.interp(at, _GRID, following)
            going = weights @ np.maximum(values, stop[n]) - price * guess_s
            go[n] = going.tolist()
            is_kept, goes_on = values > stop[n], going > stop[n]
            n_kept = weights @ (is_kept * (at + np.interp(at, _GRID, n_right)))
            kept = n_kept
            if surest != 1.0:  # else it is the same, and time
                kept = weights @ (is_kept * (won + np.interp(at, _GRID, worth)))
            n_right, worth = goes_on * n_kept, goes_on * kept
            following = np.maximum(going, stop[n])
    value = max(float(stop[0]), go[0][-1])
    rate = price * (1.0 + n_right[-1]) / (worth[-1] - value)
    return Plan(widths, stop, go, float(rate), surest)
