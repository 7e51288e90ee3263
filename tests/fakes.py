"""Models and samplers small enough to know their exact distributions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from specli.engine.cache import Cache
from specli.engine.decode import Decoder
from specli.engine.drafters import ModelDrafter, NgramDrafter
from specli.engine.fixed import FixedPlanner
from specli.engine.types import Dist, Planner, Row, Rows, certain
from specli.errors import CannotRewind

ORDER = 2  # how many tokens of the past a fake model looks at
STEPS = {1: 1.0, 2: 1.9, 3: 2.5, 4: 2.1, 5: 2.8, 8: 3.4, 16: 4.7}  # T(n), seconds, in odd steps


class FakeModel:
    """A Markov chain: its logits depend on the last two tokens, and every number is known.

    on_decode: called before each decode with the number of tokens; what it returns is how many of
    them are appended before it raises, None for all and no raise.
    """

    def __init__(
        self,
        seed: int,
        n_vocab: int = 5,
        *,
        spread: float = 2.0,
        noise: float = 0.0,
        noise_seed: int = 0,
        n_ctx: int = 4096,
        can_truncate: bool = True,
    ) -> None:
        rng = np.random.default_rng(seed)
        shape = (n_vocab + 1,) * ORDER + (n_vocab,)  # one more for "before the beginning"
        table = rng.normal(0.0, spread, shape)
        table += np.random.default_rng(noise_seed).normal(0.0, noise, shape)
        self._table = table.astype(np.float32)
        self.n_vocab = n_vocab
        self.n_ctx = n_ctx
        self.n_ctx_train = 0
        self.n_batch = 8
        self.n_rows = 64
        self.prepares = False
        self.goes_on = False
        self._started: Rows | None = None
        self.tokens: list[int] = []
        self.n_decodes = 0
        self.on_decode: Callable[[int], BaseException | None] = lambda n: None
        self.n_partial = 0  # tokens appended although a decode raised
        self._can_truncate = can_truncate

    @property
    def length(self) -> int:
        return len(self.tokens)

    def decode(self, tokens: Sequence[int], n_rows: int) -> Rows:
        assert 1 <= len(tokens) <= self.n_batch or n_rows
        assert len(self.tokens) + len(tokens) <= self.n_ctx, "past the context"
        assert all(0 <= token < self.n_vocab for token in tokens), "unknown token"
        self.n_decodes += 1
        error = self.on_decode(len(tokens))
        if error:
            self.tokens.extend(tokens[: self.n_partial])
            raise error
        start = len(self.tokens)
        self.tokens.extend(tokens)
        ends = range(start + len(tokens) - n_rows + 1, start + len(tokens) + 1)
        return np.array([self.row(self.tokens[max(0, end - ORDER) : end]) for end in ends]).reshape(
            -1, self.n_vocab
        )

    def start(self, tokens: Sequence[int], n_rows: int) -> None:
        self._started = self.decode(tokens, n_rows)

    @property
    def is_started(self) -> bool:
        return self._started is not None

    def finish(self) -> Rows:
        rows, self._started = self._started, None
        assert rows is not None, "nothing was started"
        return rows

    def row(self, history: Sequence[int]) -> Row:
        """Return the logits that follow a history."""
        past = [*[self.n_vocab] * ORDER, *history][-ORDER:]
        row: Row = self._table[tuple(past)]
        return row

    def truncate(self, length: int) -> None:
        if length and length < len(self.tokens) and not self._can_truncate:
            raise CannotRewind("this fake cannot")
        del self.tokens[length:]


@dataclass(frozen=True)
class FakeSampler:
    """Temperature, top-k and top-p in plain numpy, the reference for all others."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def begin(self, n_prompt: int) -> None:
        pass

    def logits(self, row: Row, history: Sequence[int]) -> Row:
        return row

    def warm(self, temperature: float) -> None:
        raise AssertionError("a fake stays as it is")

    def dist(self, row: Row, history: Sequence[int]) -> Dist:
        return _dist(self, row.tobytes())


@lru_cache(100_000)
def _dist(sampler: FakeSampler, row_bytes: bytes) -> Dist:
    """Compute a distribution; the rows of fake models come again and again."""
    row = np.frombuffer(row_bytes, np.float32)
    if sampler.temperature == 0:
        return certain(int(row.argmax()))
    order = np.argsort(-row, kind="stable")[: sampler.top_k or None]
    p = softmax(row[order].astype(np.float64))
    order = order[: int(np.searchsorted(np.cumsum(p), sampler.top_p)) + 1]
    order = np.sort(order)
    q = softmax(row[order].astype(np.float64) / sampler.temperature)
    q.setflags(write=False)
    return Dist(order.astype(np.int32), q)


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    p: NDArray[np.float64] = np.exp(logits - logits.max())
    p /= p.sum()
    return p


def make_decoder(
    target: FakeModel,
    draft: FakeModel | str,
    plan: int | Planner,
    sampler: FakeSampler,
    seed: int = 0,
    *,
    draft_sampler: FakeSampler | None = None,
    eog: frozenset[int] = frozenset(),
    interrupted: Callable[[], bool] = lambda: False,
) -> Decoder:
    """Put a decoder together. draft: a model, "ngram" or "none". plan: k, or a planner.

    A planner chooses between the model and n-grams.
    """
    rng = np.random.default_rng([seed, 1])
    drafter = None
    if isinstance(draft, FakeModel):
        own = draft_sampler or sampler
        greedy = own.temperature == 0
        own = FakeSampler(1.0) if greedy else own  # for its confidence
        drafter = ModelDrafter(Cache(draft), own, target.n_vocab, rng, greedy=greedy)
    both = not isinstance(plan, int) and drafter is not None
    return Decoder(
        Cache(target),
        drafter,
        NgramDrafter() if both or draft == "ngram" else None,
        FixedPlanner(plan) if isinstance(plan, int) else plan,
        sampler,
        eog,
        np.random.default_rng([seed, 0]),
        interrupted,
    )


def generated(decoder: Decoder, prompt: Sequence[int], max_tokens: int) -> list[int]:
    """Run a decoder to its end; return the tokens that it added."""
    for _ in decoder.generate(prompt, max_tokens):
        pass
    return decoder.history[len(prompt) :]


def walk(n: int) -> Iterator[tuple[int, ...]]:
    """Yield all triples of n tokens in order."""
    return ((a, b, c) for a in range(n) for b in range(n) for c in range(n))


class Clock:
    """Stands in for the module `time`: a decode takes as long as its curve says."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def times(
        self,
        model: FakeModel,
        seconds: Mapping[int, float],
        switch_s: float = 0.0,
        load_s: float = 0.0,
    ) -> None:
        """Let decodes of a model take seconds by n, interpolated.

        switch_s: how much longer the first two of another n than before take together. load_s: how
        much longer the first of each n takes.
        """
        last = n_same = 0
        loaded = set()
        costs = np.interp(range(129), list(seconds), list(seconds.values())).tolist()

        def passes(n: int) -> None:
            nonlocal last, n_same
            n_same = n_same + 1 if n == last else 0
            last = n
            self.now += costs[n]
            self.now += switch_s / 2 * (n_same < 2) + load_s * (n not in loaded)
            loaded.add(n)

        model.on_decode = passes
