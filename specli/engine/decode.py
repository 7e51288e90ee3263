"""The speculative loop: draft, verify, keep what both models may remember."""

import time
from collections.abc import Callable, Container, Iterator, Sequence

import numpy as np

from specli.engine.cache import Cache
from specli.engine.types import (
    Drafter,
    DraftPrefill,
    End,
    Event,
    Guess,
    Lookup,
    Planner,
    Prefill,
    Reason,
    Round,
    Sampler,
)
from specli.engine.verify import verify
from specli.errors import Interrupted


def never() -> bool:
    """Answer the question whether to stop with no."""
    return False


class Decoder:
    """One target with what guesses for it: continues a history of tokens, a round at a time.

    Between rounds the target's cache holds all of the history but its last token, which is
    pending, and the drafter holds a prefix of the same. Plain decoding is the same without either.
    """

    def __init__(
        self,
        target: Cache,
        drafter: Drafter | None,
        lookup: Lookup | None,
        planner: Planner,
        sampler: Sampler,
        eog: Container[int],
        rng: np.random.Generator,
        interrupted: Callable[[], bool] = never,
    ) -> None:
        """interrupted: asked between decodes; where it says yes, the generation ends there."""
        self.target = target
        self.drafter = drafter
        self.lookup = lookup
        self.history: list[int] = []
        self._ahead: list[Guess] = []  # what follows the history, guessed while the target decoded
        self._n_unread = 0  # tokens that the drafter leaves for later: to read them does not pay
        self.planner = planner
        self.sampler = sampler
        self.eog = eog
        self._rng = rng
        self._interrupted = interrupted

    def generate(self, prompt: Sequence[int], max_tokens: int | None) -> Iterator[Event]:
        """Continue the prompt (at least one token) by up to max_tokens tokens.

        Yields Prefill as the prompt is evaluated, DraftPrefill where the drafter does that only
        later, a Round for each pass of the target, and End. The caller may stop asking at any time:
        the next call finds consistent caches.
        """
        self.history = list(prompt)
        self._ahead = []
        self.sampler.begin(len(self.history))
        self._n_unread = 0
        self.planner.begin_answer()
        try:
            yield from self._prefill(max_tokens)
            n_generated = 0
            while (reason := self._reason_to_end(n_generated, max_tokens)) is None:
                left = None if max_tokens is None else max_tokens - n_generated
                yield from self._read_on(left)
                done = self._round(left)
                n_generated += len(done.tokens)
                yield done
            yield End(reason)
        except Interrupted:
            yield End("interrupted")

    def cut(self, length: int) -> None:
        """Forget the history from position `length` on; its last token becomes the pending one."""
        del self.history[length:]
        self._ahead = []
        self.target.rewind(length - 1)
        if self.lookup:
            self.lookup.prefill(self.history)
        if self.drafter:
            self.drafter.observe(self.history, 0)

    def _prefill(self, max_tokens: int | None) -> Iterator[Event]:
        started = time.perf_counter()
        steps = self.target.sync(self.history[:-1])
        n_cached = next(steps)
        n_total = len(self.history) - n_cached  # the pending token is evaluated by the first round
        yield Prefill(0, n_total, n_cached, time.perf_counter() - started)
        for n_held in steps:
            seconds = time.perf_counter() - started
            yield Prefill(n_held - n_cached, n_total, n_cached, seconds)
            self._check()
        if self.lookup:
            self.lookup.prefill(self.history)
        if self.drafter:
            reading = self.drafter.prefill(self.history)
            self._n_unread = next(reading, 0)
            if self._pays_to_read(self._n_unread, max_tokens):
                for self._n_unread in reading:
                    self._check()
        yield Prefill(n_total, n_total, n_cached, time.perf_counter() - started)
        if self._n_unread:
            yield DraftPrefill(self._n_unread, 0.0)

    def _read_on(self, left: int | None) -> Iterator[Event]:
        """Let the drafter read a batch of what it left for later, where that pays by now."""
        if not (self.drafter and self._n_unread):
            return
        draft_s = self._draft_s
        reading = self.drafter.prefill(self.history)
        n_unread = next(reading, 0)
        if self._pays_to_read(n_unread, left):
            self._n_unread = next(reading, 0)
            yield DraftPrefill(self._n_unread, self._draft_s - draft_s)

    def _pays_to_read(self, n_unread: int, left: int | None) -> bool:
        assert self.drafter
        room = self.drafter.n_ctx - len(self.history)
        return self.planner.reads(n_unread, max(0, min(room, self._most_guesses(left))))

    def _most_guesses(self, left: int | None) -> int:
        """Return how many guesses there may be: the last token of an answer needs none."""
        room = self.target.model.n_ctx - len(self.history)
        return room if left is None else min(room, left - 1)

    def _reason_to_end(self, n_generated: int, max_tokens: int | None) -> Reason | None:
        if n_generated and self.history[-1] in self.eog:
            return "eog"
        if max_tokens is not None and n_generated >= max_tokens:
            return "length"
        if len(self.history) > self.target.model.n_ctx:
            return "context"
        return None

    def _round(self, left: int | None) -> Round:
        """Run one round that adds at most `left` tokens."""
        started = time.perf_counter()
        draft_s, target_s = self._draft_s, self.target.seconds
        limit = self._most_guesses(left)
        guesses = self._guesses(limit)
        self._check()
        draft_s = self._draft_s - draft_s
        pending = [self.history[-1], *(guess.token for guess in guesses)]
        width = self.planner.width(len(pending))
        ahead: list[Guess] = []
        self.target.start(pending, width)
        try:
            ahead = self._guesses_ahead(guesses, limit, width)
        finally:
            rows = self.target.finish(slowed=len(ahead) > 1)
        proposed = ahead[0] if ahead else None
        verdict = verify(rows, guesses, self.history, self.sampler, self.eog, self._rng, proposed)
        tokens = (*(guess.token for guess in guesses[: verdict.n_accepted]), verdict.token)
        self.history.extend(tokens)
        self.target.rewind(len(self.history) - 1)
        if tokens[len(guesses) :] == tuple(guess.token for guess in ahead[:1]):
            self._ahead = ahead[1:]
        if self.lookup:
            self.lookup.observe(self.history, len(tokens))
        if self.drafter:
            self.drafter.learn(guesses, verdict.p)
            followed = [*self.history, *(guess.token for guess in self._ahead)]
            self.drafter.observe(followed, len(tokens) + len(self._ahead))
        target_s = self.target.seconds - target_s
        host_s = time.perf_counter() - started - draft_s - target_s
        seconds = draft_s, target_s, host_s
        done = Round(tokens, tuple(guesses), verdict.n_accepted, *seconds, verdict.p)
        self.planner.observe(done)
        return done

    def _guesses(self, limit: int) -> list[Guess]:
        """Collect the guesses of a round, at most `limit`, as the planner buys them."""
        guesses: list[Guess] = []
        context = list(self.history)
        ahead, self._ahead = self._ahead, []
        self.planner.begin(limit)
        while len(guesses) < limit:
            guess, n_behind = None, None
            if len(guesses) < len(ahead):
                guess = ahead[len(guesses)]
            else:
                guess = self.lookup.guess(context) if self.lookup else None
                if self.drafter and not self._n_unread:
                    n_behind = self.drafter.n_behind(context)
            choice = self.planner.choose(guess, n_behind)
            if choice == "draft" and self.drafter:
                guess = self.drafter.guess(context, self._expected(context, guess))
                self._check()
                if not self.planner.keeps(guess):
                    break
            if choice == "stop" or guess is None:
                break
            guesses.append(guess)
            context.append(guess.token)
            if guess.token in self.eog:
                break
        del guesses[self.planner.n_worth(guesses) :]
        return guesses

    def _expected(self, context: Sequence[int], found: Guess | None) -> list[int]:
        """Return what the lookup expects to follow, as far as the drafter is to read it along.

        found: its guess of the first token.
        """
        if not (self.lookup and (n := self.planner.n_along())):
            return []
        text = list(context)
        while found and len(text) < len(context) + n:
            text.append(found.token)
            found = self.lookup.guess(text)
        return text[len(context) :]

    def _guesses_ahead(self, guesses: Sequence[Guess], limit: int, width: int) -> list[Guess]:
        """Guess what comes after the guesses, while the target judges them.

        The first is what the target's own token may turn out to be; the others then begin the next
        round. Where it is another one, or a guess is rejected, they were made for nothing.
        """
        ahead: list[Guess] = []
        if not (guesses and self.drafter and self.target.model.goes_on):
            return ahead
        context = [*self.history, *(guess.token for guess in guesses)]
        started = time.perf_counter()
        while len(guesses) + len(ahead) <= limit and context[-1] not in self.eog:
            seconds = time.perf_counter() - started
            if self._interrupted() or not self.planner.goes_ahead(len(ahead), width, seconds):
                break
            if self.drafter.n_behind(context) != 1:
                break
            ahead.append(self.drafter.guess(context, beside=True))
            context.append(ahead[-1].token)
        return ahead

    @property
    def _draft_s(self) -> float:
        return self.drafter.seconds if self.drafter else 0.0

    def _check(self) -> None:
        if self._interrupted():
            raise Interrupted("interrupted")
