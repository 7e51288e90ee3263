"""Plain decoding in its simplest form: what speculation is held against.

It shares the model, its cache and the sampler with the speculative loop, and nothing else.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from specli.engine.cache import Cache
from specli.engine.decode import Decoder, never
from specli.engine.types import End, Round, Row, Sampler
from specli.errors import Interrupted


@dataclass(frozen=True, slots=True)
class Target:
    """A model that decodes by itself, and how its tokens are drawn."""

    cache: Cache
    sampler: Sampler
    eog: Container[int]
    interrupted: Callable[[], bool] = never

    def decode(
        self, prompt: Sequence[int], max_tokens: int, rng: np.random.Generator
    ) -> Iterator[tuple[int, Row]]:
        """Continue a prompt one token at a time; yield each with the logits that it was drawn from.

        The logits are valid until the next token is asked for. Raises Interrupted.
        """
        history = list(prompt)
        self._sync(history[:-1])
        while len(history) < len(prompt) + max_tokens and len(history) <= self.cache.model.n_ctx:
            self._check()
            row = self.cache.fill(history[-1:], 1)[0]
            token = self.sampler.dist(row, history).draw(rng)
            history.append(token)
            yield token, row
            if token in self.eog:
                return

    def read(self, prompt: Sequence[int], answer: Sequence[int], n_rows: int) -> Iterator[Row]:
        """Yield the logits before each token of an answer, decoded n_rows at a time.

        Each is valid until the next is asked for. Raises Interrupted.
        """
        self._sync(list(prompt[:-1]))
        tokens = [prompt[-1], *answer[:-1]]
        for at in range(0, len(tokens), n_rows):
            self._check()
            step = tokens[at : at + n_rows]
            yield from self.cache.fill(step, len(step))

    def forget(self) -> None:
        """Empty the cache: what was computed before says nothing of what comes."""
        self.cache.rewind(0)

    def _sync(self, tokens: Sequence[int]) -> None:
        for _ in self.cache.sync(tokens):
            self._check()

    def _check(self) -> None:
        if self.interrupted():
            raise Interrupted("interrupted")


def target_of(decoder: Decoder, interrupted: Callable[[], bool] = never) -> Target:
    """Return the target of a decoder, to decode without it."""
    return Target(decoder.target, decoder.sampler, decoder.eog, interrupted)


def rounds_of(decoder: Decoder, prompt: Sequence[int], max_tokens: int) -> list[Round]:
    """Continue a prompt speculatively; return its rounds. Raises Interrupted."""
    rounds = []
    for event in decoder.generate(prompt, max_tokens):
        if isinstance(event, Round):
            rounds.append(event)
        elif isinstance(event, End) and event.reason == "interrupted":
            raise Interrupted("interrupted")
    return rounds
