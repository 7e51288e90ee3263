"""Where guesses come from: nowhere, a draft model, or the text itself."""

from collections.abc import Iterator, Sequence

import numpy as np

from specli.engine.cache import Cache, common_prefix
from specli.engine.types import Guess, Sampler
from specli.errors import CannotRewind


class NoDrafter:
    """Never guess: plain decoding."""

    name = "none"
    muted = ""
    seconds = 0.0

    def prefill(self, prompt: Sequence[int]) -> Iterator[None]:
        """Need nothing of the prompt."""
        return iter(())

    def guesses(self, history: Sequence[int]) -> Iterator[Guess]:
        """Guess nothing."""
        return iter(())

    def observe(self, history: Sequence[int]) -> None:
        """Learn nothing."""


class ModelDrafter:
    """Let a smaller model with the same vocabulary run ahead of the target.

    Its guesses are draws from its own distribution q under `sampler`; any q is exact. Confidence is
    the largest probability of q. It is silent where it cannot follow: past its own context, or
    after a token that it does not know.
    """

    name = "draft"

    def __init__(
        self,
        cache: Cache,
        sampler: Sampler,
        n_vocab: int,
        rng: np.random.Generator,
        *,
        greedy: bool = False,
    ) -> None:
        """n_vocab: how many tokens the target knows; the draft proposes no other.

        greedy: propose what is likeliest under `sampler` instead of a draw.
        """
        self._cache = cache
        self._sampler = sampler
        self._n_vocab = n_vocab
        self._rng = rng
        self._greedy = greedy
        self.muted = ""

    @property
    def seconds(self) -> float:
        """Time spent in decodes of the draft model."""
        return self._cache.seconds

    def prefill(self, prompt: Sequence[int]) -> Iterator[None]:
        """Decode all but the last token of the prompt."""
        if self._can_follow(prompt):
            for _ in self._cache.sync(prompt[:-1]):
                yield

    def guesses(self, history: Sequence[int]) -> Iterator[Guess]:
        """Yield draws from the draft model, each one decode."""
        if not self._can_follow(history):
            return
        for _ in self._cache.sync(history[:-1]):
            pass
        context = list(history)
        while len(context) <= self._cache.model.n_ctx:
            row = self._cache.fill(context[-1:], 1)[0, : self._n_vocab]
            q = self._sampler.dist(row, context)
            best = int(q.p.argmax())
            token = int(q.ids[best]) if self._greedy else q.draw(self._rng)
            certain = self._greedy or len(q.ids) == 1
            yield Guess(token, None if certain else q, float(q.p[best]))
            context.append(token)

    def observe(self, history: Sequence[int]) -> None:
        """Drop what the target rejected, at once: the shared prefix stays."""
        kept = min(common_prefix(self._cache.tokens, history), len(history) - 1)
        try:
            self._cache.rewind(kept)
        except CannotRewind:  # it fell silent long ago, and its window has moved on
            self._cache.rewind(0)

    def _can_follow(self, history: Sequence[int]) -> bool:
        new = history[common_prefix(self._cache.tokens, history) :]
        model = self._cache.model
        self.muted = ""
        if len(history) > model.n_ctx:
            self.muted = f"the draft's context of {model.n_ctx} tokens is full"
        elif any(token >= model.n_vocab for token in new):
            self.muted = "the draft does not know a token of this text"
        return not self.muted


class NgramDrafter:
    """Guess that what followed the last few tokens before will follow them again.

    Prompt lookup decoding: the longest of the n-grams that ends the history is looked for in the
    history itself, its latest earlier occurrence is continued.
    """

    name = "ngram"
    muted = ""
    seconds = 0.0

    def __init__(self, n_max: int = 4, n_min: int = 2) -> None:
        self._sizes = range(n_max, n_min - 1, -1)
        self._indexed: list[int] = []
        self._follower: dict[tuple[int, ...], int] = {}  # n-gram -> position after its last one

    def prefill(self, prompt: Sequence[int]) -> Iterator[None]:
        """Index the prompt."""
        self.observe(prompt)
        return iter(())

    def guesses(self, history: Sequence[int]) -> Iterator[Guess]:
        """Continue the latest earlier occurrence of the longest n-gram that ends the history."""
        self.observe(history)
        for n in self._sizes:
            at = self._follower.get(tuple(history[-n:]))
            if at is not None:
                for token in history[at:]:
                    yield Guess(token, None, n / (n + 1))
                return

    def observe(self, history: Sequence[int]) -> None:
        """Index the n-grams that end before the last token: they have a token to offer."""
        if common_prefix(self._indexed, history) < len(self._indexed):
            self._indexed.clear()
            self._follower.clear()
        for at in range(len(self._indexed), len(history)):
            for n in self._sizes:
                if at >= n:
                    self._follower[tuple(history[at - n : at])] = at
        self._indexed.extend(history[len(self._indexed) :])
