"""What decodes of a pair cost and its guesses are worth, from one session to the next."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

from specli.engine.acceptance import DRAWN_RATES, GREEDY_RATES, KEPT, TRUE_RATES, Acceptance
from specli.engine.costs import LEAST_S, N_MAX, CostCurve
from specli.engine.tempering import Tempering
from specli.measurements import Measurements
from specli.settings import SamplingSettings

_N_SAMPLINGS = 16  # of so many settings is kept how often guesses were right


class Learned:
    """What earlier sessions of a pair have learned; data that make no sense are as good as none.

    Costs do not depend on how tokens are drawn, acceptance does. How often n-grams are right is an
    affair of the text: that is not kept.
    """

    def __init__(
        self, identity: Mapping[str, Any], sampling: SamplingSettings, *, goes_on: bool = False
    ) -> None:
        """identity: all that costs depend on, beside the machine.

        goes_on: whether this is the session that learned it; in another one it has faded.
        """
        self._kept = 1.0 if goes_on else KEPT
        self._file = Measurements(identity)
        self._sampling = " ".join(map(str, astuple(sampling)))
        rates = DRAWN_RATES if sampling.temperature else GREEDY_RATES
        try:
            self._parse(self._file.load(), rates)
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError):
            self._parse({}, rates)

    def save(self, target: CostCurve, draft: CostCurve | None) -> None:
        """Keep what is known now."""
        of_draft = {**self.acceptance["draft"].known(), "temperature": self.tempering.factor}
        of_samplings = self._of_samplings | {self._sampling: of_draft}
        self._file.save(
            {
                "target_s": target.known(),
                "draft_s": draft.known() if draft else {},
                "target_each_s": target.each_s,
                "draft_each_s": draft.each_s if draft else 0.0,
                "acceptance": dict(list(of_samplings.items())[-_N_SAMPLINGS:]),
            }
        )

    def _parse(self, held: Mapping[str, Any], rates: Sequence[float]) -> None:
        self.target_s = _seconds(held.get("target_s", {}))
        self.draft_s = _seconds(held.get("draft_s", {}))
        self.target_each_s = _each(held.get("target_each_s", 0.0))
        self.draft_each_s = _each(held.get("draft_each_s", 0.0))
        self._of_samplings: dict[str, Any] = dict(held.get("acceptance", {}))
        learned = self._of_samplings.pop(self._sampling, {})
        draft = Acceptance(rates, learned, kept=self._kept)
        self.tempering = Tempering(learned.get("temperature"))
        self.acceptance = {"draft": draft, "ngram": Acceptance(TRUE_RATES, lasts=False)}


def _seconds(held: Mapping[str, float]) -> dict[int, float]:
    known = {int(n): float(seconds) for n, seconds in held.items()}
    sizes = set(known) <= set(range(1, N_MAX + 1))
    if known and not (sizes and 1 in known and all(LEAST_S <= s < 1e6 for s in known.values())):
        raise ValueError("these are no costs")
    return known


def _each(held: float) -> float:
    if not 0.0 <= float(held) < 1e6:
        raise ValueError("that is no time")
    return float(held)
