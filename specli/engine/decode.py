"""The speculative loop: draft, verify, keep what both models may remember."""

import time
from collections.abc import Callable, Container, Iterator, Sequence

import numpy as np

from specli.engine.cache import Cache
from specli.engine.types import (
    Drafter,
    End,
    Event,
    Guess,
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
    """One target with its drafter: continues a history of tokens, a round at a time.

    Between rounds the target's cache holds all of the history but its last token, which is
    pending, and the drafter holds a prefix of the same.
    """

    def __init__(
        self,
        target: Cache,
        drafter: Drafter,
        planner: Planner,
        sampler: Sampler,
        eog: Container[int],
        rng: np.random.Generator,
        interrupted: Callable[[], bool] = never,
    ) -> None:
        """interrupted: asked between decodes; where it says yes, the generation ends there."""
        self.target = target
        self.drafter = drafter
        self.history: list[int] = []
        self._planner = planner
        self._sampler = sampler
        self._eog = eog
        self._rng = rng
        self._interrupted = interrupted

    def generate(self, prompt: Sequence[int], max_tokens: int | None) -> Iterator[Event]:
        """Continue the prompt (at least one token) by up to max_tokens tokens.

        Yields Prefill as the prompt is evaluated, a Round for each pass of the target, and End. The
        caller may stop asking at any time: the next call finds consistent caches.
        """
        self.history = list(prompt)
        try:
            yield from self._prefill()
            n_generated = 0
            while (reason := self._reason_to_end(n_generated, max_tokens)) is None:
                left = None if max_tokens is None else max_tokens - n_generated
                done = self._round(left)
                n_generated += len(done.tokens)
                yield done
            yield End(reason)
        except Interrupted:
            yield End("interrupted")

    def cut(self, length: int) -> None:
        """Forget the history from position `length` on; its last token becomes the pending one."""
        del self.history[length:]
        self.target.rewind(length - 1)
        self.drafter.observe(self.history)

    def _prefill(self) -> Iterator[Event]:
        started = time.perf_counter()
        steps = self.target.sync(self.history[:-1])
        n_cached = next(steps)
        n_total = len(self.history) - n_cached  # the pending token is evaluated by the first round
        yield Prefill(0, n_total, n_cached, time.perf_counter() - started)
        for n_held in steps:
            seconds = time.perf_counter() - started
            yield Prefill(n_held - n_cached, n_total, n_cached, seconds)
            self._check()
        for _ in self.drafter.prefill(self.history):
            self._check()
        yield Prefill(n_total, n_total, n_cached, time.perf_counter() - started)

    def _reason_to_end(self, n_generated: int, max_tokens: int | None) -> Reason | None:
        if n_generated and self.history[-1] in self._eog:
            return "eog"
        if max_tokens is not None and n_generated >= max_tokens:
            return "length"
        if len(self.history) > self.target.model.n_ctx:
            return "context"
        return None

    def _round(self, left: int | None) -> Round:
        """Run one round that adds at most `left` tokens."""
        started = time.perf_counter()
        draft_s, target_s = self.drafter.seconds, self.target.seconds
        room = self.target.model.n_ctx - len(self.history)
        guesses = self._draft(room if left is None else min(room, left - 1))
        self._check()
        pending = [self.history[-1], *(guess.token for guess in guesses)]
        rows = self.target.fill(pending, len(pending))
        verdict = verify(rows, guesses, self.history, self._sampler, self._eog, self._rng)
        tokens = (*(guess.token for guess in guesses[: verdict.n_accepted]), verdict.token)
        self.history.extend(tokens)
        self.target.rewind(len(self.history) - 1)
        self.drafter.observe(self.history)
        draft_s = self.drafter.seconds - draft_s
        target_s = self.target.seconds - target_s
        host_s = time.perf_counter() - started - draft_s - target_s
        done = Round(tokens, len(guesses), verdict.n_accepted, draft_s, target_s, host_s)
        self._planner.observe(done)
        return done

    def _draft(self, limit: int) -> list[Guess]:
        guesses: list[Guess] = []
        if limit <= 0 or not self._planner.wants(0, 1.0):
            return guesses
        for guess in self.drafter.guesses(self.history):
            guesses.append(guess)
            self._check()
            if guess.token in self._eog or len(guesses) == limit:
                break
            if not self._planner.wants(len(guesses), guess.confidence):
                break
        return guesses

    def _check(self) -> None:
        if self._interrupted():
            raise Interrupted("interrupted")
