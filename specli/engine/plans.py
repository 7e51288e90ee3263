"""The plan that rounds go by, made anew as costs and guesses turn out."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from specli.engine.acceptance import Acceptance
from specli.engine.costs import N_MAX, WIDTHS, CostCurve
from specli.engine.plan import HORIZON, Plan, solve
from specli.engine.types import Round
from specli.engine.widths import KEPT, Widths

_HOST_ROUNDS = 10.0  # that the running mean of the host's time looks back on
_N_FIRST = 3  # plans after which the first one's price is what it promises
_PLAN_S = 0.12  # seconds of rounds that plans serve: making one takes 0.3 to 1.2 ms
_FIRST_HORIZON = 16  # guesses that are planned for at least; more where a round had half as many
_HORIZON_MEMORY = 0.9  # what is left of the most guesses of a round after each new one
_MARGIN = 0.05  # by which guesses are reckoned dearer than they are believed to be
_WIDE_MARGIN = 0.06  # by which a width with guesses has to promise more than none
_WIDTHS = np.array(WIDTHS)


class Plans:
    """Says what guesses are worth, for the present costs and outlook.

    That is a problem of optimal stopping, solved backwards over the number of guesses n and the
    probability p that all of them are right, with
    stop(n) = -price (T(n + 1) + (n + 1) T_host) and
    go(n, p) = -price T_draft + E max(stop(n), p a + max(stop, go)(n + 1, p a)),
    where a, the acceptance of the next guess, is known only once it is made. (A sure guess counts
    for a little less than p a, as the next round would bring it as cheaply.) Where the target had
    better decode as many tokens as before, that is solved for each width, rounds of fewer tokens
    being padded to it. A width is left when what was missed by keeping it is worth the change, as
    skis are bought when as much was paid to rent them (docs/adr/0023).

    plan: what rounds go by. price: the tokens that a second was worth to it: the rate that the plan
    before it promised, as Dinkelbach 1967 finds the best one. host_s: what a row costs the host,
    judging it and guessing what it judges. behind_s: what a draft's first guess costs more than
    others, spread out.
    """

    def __init__(
        self, target: CostCurve, draft: CostCurve | None, acceptance: Mapping[str, Acceptance]
    ) -> None:
        """draft: the costs of the model that guesses, if one does. acceptance: by drafter."""
        self._target = target
        self._draft = draft
        self._acceptance = acceptance
        self.host_s = 0.0
        self.behind_s = 0.0
        self.begin()

    def begin(self) -> None:
        """Begin a text: what the plan for the one before promised does not hold."""
        self._since_s = 0.0  # since the plan was made
        self._longest = 0.0  # most guesses of the draft in a round, lately
        self._widths = Widths()
        self.price = 1.0 / self._target.at(1)
        for _ in range(_N_FIRST):
            self.plan = self._best()
            self.price = self.plan.rate

    def renew(self) -> None:
        """Make another plan where this one has served."""
        if self._since_s < _PLAN_S:
            return
        self._since_s = 0.0
        self.price = self.plan.rate
        if self._target.switch_s:
            change = self._change()
            self.plan = self._widths.next(self.plan, self._of_width, self._value, change)
        else:
            self.plan = self._best()

    def observe(self, done: Round) -> None:
        """Learn from a finished round."""
        self._since_s += done.draft_s + done.target_s + done.host_s
        n_of_draft = sum(guess.source == "draft" for guess in done.guesses)
        self._longest = max(n_of_draft, self._longest * _HORIZON_MEMORY)
        self._widths.observe()
        self.host_s += (done.host_s / (done.n_drafted + 1) - self.host_s) / _HOST_ROUNDS

    def stop(self, last_width: int) -> NDArray[np.float64]:
        """Return what a round is worth that ends with n guesses, (N_MAX,), after such a decode."""
        stop = self.plan.stop
        if self._target.switch_s:
            stop = stop - (self.plan.widths != last_width) * self._change()
        return stop

    def guess_s(self) -> float:
        """Return what a guess of the draft is reckoned to cost; 0 where there is none."""
        return self._draft.at(1) * (1.0 + _MARGIN) if self._draft else 0.0

    def loss_s(self) -> float:
        """Return what a round with one guess of the draft is expected to lose."""
        extra_s = self._target.at(2) - self._target.at(1) + 2 * self._target.switch_s
        cost_s = self.guess_s() + extra_s * (1.0 + _MARGIN)
        return cost_s - self._acceptance["draft"].expected() / self.price

    def share(self) -> float:
        """Return what share of plain decoding's time the draft is expected to save in an answer.

        In some texts it is certain of nearly all, and nothing tells which before it has read one.
        As many texts as guesses are taken for such: two of five at first, as measured.
        """
        weights, rates = self._acceptance["draft"].outlook()
        n = np.arange(N_MAX)  # guesses, of which it is certain
        tokens = np.cumsum(rates[-1] ** n)
        seconds = n * self.guess_s() + self._target.seconds()[n + 1] + (n + 1) * self.host_s
        best, plain_s = float(np.max(tokens / seconds)), self._target.at(1)
        usual, most = (max(0.0, 1.0 - 1.0 / (rate * plain_s)) for rate in (self.plan.rate, best))
        return usual + float(weights[-1]) * max(0.0, most - usual)

    def may_pay(self, reading_s: float, n_left: int) -> bool:
        """Say whether the rest of an answer would pay for drafting if all guesses were right.

        reading_s: what the draft takes for what it has to read first. n_left: tokens of the rest.
        """
        assert self._draft
        costs = self._target.seconds()
        n = np.arange(1, HORIZON)
        extra_s = n * self._draft.at(1) + costs[2 : HORIZON + 1] - costs[1]
        won = float(np.max((n - self.price * extra_s) / (n + 1)))  # of each token, in tokens
        return won * n_left > self.price * reading_s

    def _best(self) -> Plan:
        """Return the plan that is worth most at the present price."""
        if not self._target.switch_s:
            horizon = min(HORIZON, max(_FIRST_HORIZON, round(2.0 * self._longest)))
            return self._solved(np.arange(1, N_MAX + 1), horizon, self.guess_s(), stays_sure=True)
        return max((self._of_width(width) for width in KEPT), key=self._value)

    def _of_width(self, least: int) -> Plan:
        """Return the plan for rounds that are padded to a width."""
        wanted = np.maximum(np.arange(1, N_MAX + 1), least)
        widths = _WIDTHS[np.searchsorted(_WIDTHS, wanted)]
        guess_s = self._draft.at(1) if self._draft else 0.0
        plan = self._solved(widths, least - 1, guess_s)
        if least == 1:
            plan.stop[0] *= 1.0 - _WIDE_MARGIN
        return plan

    def _solved(
        self, widths: NDArray[np.int_], horizon: int, guess_s: float, *, stays_sure: bool = False
    ) -> Plan:
        """Return the plan for some widths, guesses of the draft being bought up to the horizon.

        stays_sure: reckon that a sure guess may as well be made in the next round, and is worth
        less in this one.
        """
        seconds = self._target.seconds()[widths]
        seconds[widths > widths[0]] += self._target.switch_s  # for the way back
        stop = -self.price * (seconds + np.arange(1, N_MAX + 1) * self.host_s)
        outlook = self._acceptance["draft"].outlook() if self._draft else None
        surest = 1.0
        if outlook and stays_sure:
            n = np.arange(1, N_MAX)  # what a token costs where all guesses are right, at best
            least = float(np.min((self.price * n * guess_s - stop[1:]) / (n + 1)))
            surest -= float(outlook[0][-1]) * max(0.0, 1.0 - least)
        return solve(widths, stop, self.price, guess_s, outlook, horizon, surest)

    def _change(self) -> float:
        """Return what a decode of another number of tokens than the last costs, in tokens."""
        return self.price * self._target.switch_s

    def _value(self, plan: Plan) -> float:
        """Return what a round is worth before its first guess."""
        return max(float(plan.stop[0]), plan.go[0][-1] - self.price * self.behind_s)
