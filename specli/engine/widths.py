"""How many tokens a target decodes that prepares itself anew for each other number of them."""

from collections.abc import Callable

from specli.engine.costs import WIDTHS
from specli.engine.plan import Plan

_MOST = 24  # tokens, of what was measured on GPUs
KEPT = tuple(width for width in WIDTHS if width <= _MOST)


class Widths:
    """Keeps a width, until what was missed by keeping it is worth the change.

    As skis are bought when as much was paid to rent them.
    """

    def __init__(self) -> None:
        self._turn = 0
        self._n_rounds = 0
        self._forget()

    def observe(self) -> None:
        """Learn that there was a round."""
        self._n_rounds += 1

    def next(
        self,
        plan: Plan,
        of_width: Callable[[int], Plan],
        value: Callable[[Plan], float],
        change: float,
    ) -> Plan:
        """Return the plan for the coming rounds: of the same width as the last one, or another.

        of_width: returns the present plan for a width. value, change: what a round of a plan is
        worth, and what a change costs, in tokens.
        """
        at = KEPT.index(int(plan.widths[0]))
        self._turn = (self._turn + 1) % len(KEPT)  # of those further off one at a time: they cost
        best = of_width(KEPT[at])
        kept = value(best)
        for other in {max(at - 1, 0), min(at + 1, len(KEPT) - 1), self._turn} - {at}:
            plan = of_width(KEPT[other])
            n_since = self._n_rounds - self._compared[other]
            self._compared[other] = self._n_rounds
            missed = self._missed[other] + (value(plan) - kept) * n_since
            self._missed[other] = max(0.0, missed)
            if missed > change:
                best, change = plan, missed
        if best.widths[0] != KEPT[at]:
            self._forget()
        return best

    def _forget(self) -> None:
        self._missed = [0.0] * len(KEPT)  # by not having kept another width
        self._compared = [self._n_rounds] * len(KEPT)  # after how many rounds with the kept one
