"""How many guesses to buy in a round, and from whom."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import inf

import numpy as np

from specli.engine.acceptance import SUREST, Acceptance
from specli.engine.along import Along
from specli.engine.costs import N_MAX, CostCurve
from specli.engine.guard import Guards
from specli.engine.looks import Looks
from specli.engine.plan import HORIZON
from specli.engine.plans import Plans
from specli.engine.reading import Reading
from specli.engine.types import Choice, Costs, Guess, Round

_CATCH_UP = 8.0  # rounds that pay for what a draft has to read before it can guess again
_AT_HAND = 8  # tokens that a draft may be behind, and still be asked before a text is copied
_ALONE = 0.9  # probability from which on what is found needs no draft that agrees
_BESIDE_GAIN = 0.2  # of the last guess that was made beside a decode, in what such a guess takes


class AutoPlanner:
    """Maximise tokens per second, guess by guess, from what decodes cost and guesses are worth.

    Time has a price: the tokens that a second brings where rounds go as planned. A guess is bought
    where the tokens that it and what may follow it are expected to bring exceed the price of its
    time; Plans says what they are. Guards stops what loses whatever is believed of it, Looks and
    Reading ration what does not pay yet.
    """

    def __init__(
        self,
        target: CostCurve,
        draft: CostCurve | None,
        acceptance: Mapping[str, Acceptance],
        ratios_of_rows: CostCurve | None = None,
    ) -> None:
        """draft: the costs of the model that guesses, if one does. acceptance: by drafter.

        ratios_of_rows: how many times as much as one that returns one row a decode of the draft
        costs that returns one for each token; None where it does not read along.
        """
        self._target = target
        self._draft = draft
        self._along = Along(draft, ratios_of_rows) if draft and ratios_of_rows else None
        self._acceptance = acceptance
        self._plans = Plans(target, draft, acceptance)
        self._looks = Looks()
        self._reading = Reading()
        self._waits = False  # whether the draft does not read the prompt so far
        self._share = 0.0  # of plain decoding's time, that it is expected to save in this answer
        self._guards = Guards(draft is not None, target.switch_s > 0.0)
        self._seen: Guess | None = None  # the guess that was not kept
        self._is_asked = False  # whether the draft has guessed in this round
        self._last = 0  # the width of the last round
        self._ahead_s = 0.0  # since the target began to decode, when it was last asked
        self._beside_s = 0.0  # of a guess that is made meanwhile
        self._start()

    def begin_answer(self) -> None:
        """Start an answer: a draft that was of no use in the last one may be of use in this."""
        for one in self._acceptance.values():
            one.begin()
        self._plans.begin()
        if self._along:
            self._along.begin_answer()
        self._looks.begin()
        self._reading.begin()
        self._last = 0  # the prompt comes between
        self._waits = False

    def reads(self, n_unread: int, n_left: int) -> bool:
        """Say whether it pays that the draft reads the prompt.

        On a GPU it always does: large batches are read many times as fast as T(N_MAX) tells.
        """
        assert self._draft
        if self._target.switch_s > 0.0:
            return True
        if not self._waits:
            self._share = self._plans.share()
        worth = n_left, self._target.at(1), self._share
        self._waits = not self._reading.pays(self._draft.at(n_unread), *worth)
        return not self._waits

    def begin(self, n_max: int) -> None:
        """Start a round of at most n_max guesses, of which the answer's rest has no more."""
        self._n_left = n_max
        self._n_max = min(n_max, N_MAX - 1)
        self._guards.begin(self._target.at(1))
        self._start()
        self._plans.renew()
        stop = self._plans.stop(self._last)
        self._stop: list[float] = stop.tolist()
        self._most = np.maximum.accumulate(stop[::-1])[::-1].tolist()  # of those from here on

    def choose(self, found: Guess | None, n_behind: int | None) -> Choice:
        """Say where the next guess comes from, if one is worth its price.

        found: what the lookup offers for nothing. n_behind: tokens that the draft has to decode for
        its next guess; None where there is none.
        """
        n, p = len(self._path), self._p
        if n >= self._n_max or self._guards.is_plain:
            return "stop"
        best, choice = self._stop[n], _STOP
        n_behind = n_behind if self._guards.may("draft") else None
        found = found if found and self._guards.may(found.source) else None
        if self._along:
            self._along.begin(found)
        if n_behind is not None and self._draft and n < HORIZON:
            behind_s = 0.0
            if n_behind > 1:
                behind_s = (self._draft.at(n_behind) - self._draft.at(1)) / _CATCH_UP
            if n == 0:
                self._plans.behind_s = behind_s
            saved_s = self._along_s(n_behind)
            go = self._plans.plan.going_on(n, p) + self._plans.price * (saved_s - behind_s)
            if go > best:
                best, choice = go, _DRAFT
            elif n == 0 and self._is_look_due(self._draft, n_behind, behind_s):
                self._is_look = True
                return "draft"
        if found is not None and (n_behind is None or self._may_be_alone(found, n_behind, choice)):
            a = self._acceptance[found.source].probability(found.confidence)
            if p * a + self._best(n + 1, p * a) > best or self._run(n, p, a, best) > best:
                self._advance(a)
                return "found"
        return choice

    def n_along(self) -> int:
        """Return how many of the tokens that are expected the draft reads with its guess."""
        return self._along.n if self._along and not self._is_look else 0

    def keeps(self, guess: Guess) -> bool:
        """Say whether a guess of the draft, once made, is worth a row of the target's decode."""
        n, p = len(self._path), self._p
        a = self._acceptance[guess.source].probability(guess.confidence)
        self._is_asked = True
        if self._along:
            self._along.observe(guess)
        worth = self._plans.plan.surest if guess.confidence >= SUREST else 1.0
        kept = self._is_look or p * a * worth + self._best(n + 1, p * a) > self._stop[n]
        if kept:
            self._advance(a)
        else:
            self._seen = guess
        return kept

    def n_worth(self, guesses: Sequence[Guess]) -> int:
        """Return how many guesses to keep, now that nothing follows them.

        Only guesses without a choice may go: to drop a drawn one because of what came after it
        would change the distribution of what is kept.
        """
        if not guesses:
            return 0
        n_drawn = max((i + 1 for i, guess in enumerate(guesses) if guess.q is not None), default=0)
        if self._is_look:
            n_drawn = max(n_drawn, 1)
        reached = accumulate(self._path, initial=0.0)
        values = [tokens + stop for tokens, stop in zip(reached, self._stop, strict=False)]
        return max(range(n_drawn, len(values)), key=values.__getitem__)

    def goes_ahead(self, n_ahead: int, width: int, seconds: float) -> bool:
        """Guess ahead as long as the next guess will be there before the target is done."""
        if n_ahead:
            took_s = seconds - self._ahead_s
            self._beside_s += (_BESIDE_GAIN if self._beside_s else 1.0) * (took_s - self._beside_s)
        self._ahead_s = seconds
        in_time = seconds + self._beside_s <= self._target.at(width)
        return in_time and self._guards.may("draft")

    def width(self, n_tokens: int) -> int:
        """Return the width that is kept at present, or the next one where that is too small."""
        return n_tokens if self._guards.is_plain else int(self._plans.plan.widths[n_tokens - 1])

    def observe(self, done: Round) -> None:
        """Learn from a finished round."""
        self._last = self.width(done.n_drafted + 1)
        self._plans.observe(done)
        self._guards.observe(done, self._target.at(1))
        self._looks.observe(done, self._is_look, self._target.at(1))
        self._reading.observe(len(done.tokens))
        if self._waits and self._guards.may("draft"):
            self._reading.miss(len(done.tokens), self._target.at(1), self._share)
        for guess, token in zip(done.guesses, done.tokens, strict=False):
            self._acceptance[guess.source].observe(guess.confidence, guess.token == token)
        if self._seen and len(done.tokens) > done.n_drafted:
            self._acceptance[self._seen.source].see(self._seen.confidence)

    def costs(self) -> Costs:
        """Return what it believes that decodes cost now."""
        return Costs(self._target.known(), self._draft.at(1) if self._draft else 0.0)

    def _start(self) -> None:
        self._p = 1.0
        self._path: list[float] = []  # probability that guess 1, 2, ... and all before are right
        self._is_look = False
        self._seen = None
        self._is_asked = False

    def _advance(self, a: float) -> None:
        self._p *= a
        self._path.append(self._p)

    def _along_s(self, n_behind: int) -> float:
        """Return what its next guesses cost the draft less than others, for what it reads along."""
        assert self._draft
        if n_behind == 0:  # this one was read along
            return self._plans.guess_s()
        if not self._along or n_behind > _AT_HAND:
            return 0.0
        n_most = min(HORIZON, self._n_max) - len(self._path) - 1
        return self._along.settle(n_behind, n_most, self._acceptance["draft"].expected())

    def _may_be_alone(self, found: Guess, n_behind: int, choice: Choice) -> bool:
        """Say whether what is found may be taken without asking the draft.

        A draft that is at hand, worth asking and able to read along tells best whether a text goes
        on as it did.
        """
        is_of_use = n_behind <= _AT_HAND and (self._is_asked or choice is _DRAFT)
        if not is_of_use or not self._along:
            return True
        a = self._acceptance[found.source].probability(found.confidence)
        return n_behind > 0 and a >= _ALONE

    def _best(self, n: int, p: float) -> float:
        """Return the value of going on from n guesses in the best way."""
        if n >= min(HORIZON, self._n_max) or not self._guards.may("draft"):
            return self._stop[n]
        return max(self._stop[n], self._plans.plan.going_on(n, p))

    def _run(self, n: int, p: float, a: float, wanted: float) -> float:
        """Return the value of a run of found guesses, or less than is wanted where it has less."""
        if p * a / (1.0 - a) + self._most[n + 1] <= wanted:
            return -inf
        reach = p * np.cumprod(np.full(self._n_max - n, a))
        run = np.cumsum(reach) + self._stop[n + 1 : self._n_max + 1]
        return float(run.max())

    def _is_look_due(self, draft: CostCurve, n_behind: int, behind_s: float) -> bool:
        """Say whether to ask a draft for a guess that is not expected to pay.

        n_behind: tokens that it has to decode for that. behind_s: what they cost, spread out.
        """
        reading_s = draft.at(max(1, n_behind)) - draft.at(1)
        is_due = self._looks.is_due(self._plans.loss_s() + behind_s)
        return is_due and self._plans.may_pay(reading_s, self._n_left)


_STOP: Choice = "stop"
_DRAFT: Choice = "draft"
