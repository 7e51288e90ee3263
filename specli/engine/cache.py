"""The tokens that a KV cache holds, and the two ways to change them: sync and rewind."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specli.engine.costs import CostCurve
from specli.engine.types import Model, Rows
from specli.errors import CannotRewind


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many leading tokens two sequences share."""
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    return next(i for i in range(n) if a[i] != b[i])


_READY_S = 50e-6  # to fetch what a GPU has computed already takes less


@dataclass(frozen=True, slots=True)
class _Begun:
    """A decode of `width` tokens that was started: the first n are wanted, `length` with them."""

    length: int
    n: int
    width: int
    started: float
    returned: float


class Cache:
    """A model together with the tokens in its KV sequence.

    Tokens are written down before they are decoded and crossed out after they are dropped. So the
    model always holds a prefix of what is written, whatever interrupts, and its own length says
    how much of it is true.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.seconds = 0.0  # spent in decodes
        self.costs: CostCurve | None = None  # learns from decodes that return logits
        self._written: list[int] = []
        self._begun: _Begun | None = None
        self._usual_s: dict[int, float] = {}  # of the last decode of n tokens that was waited for

    @property
    def tokens(self) -> list[int]:
        """The tokens in the KV sequence, as a list that is the cache's own: do not change it."""
        del self._written[self.model.length :]
        return self._written

    def fill(self, tokens: Sequence[int], n_rows: int, *, beside: bool = False) -> Rows:
        """Append tokens, at most one batch; return the logits of the last n_rows.

        beside: another decode goes on meanwhile, so that the time it takes tells nothing.
        """
        self.tokens.extend(tokens)
        started = time.perf_counter()
        try:
            rows = self.model.decode(tokens, n_rows)
        finally:
            seconds = time.perf_counter() - started
            self.seconds += seconds
        if self.costs and n_rows:
            self.costs.observe(len(tokens), None if beside else seconds)
        return rows

    def start(self, tokens: Sequence[int], width: int) -> None:
        """Append tokens, and begin to compute the logits of all of them, which `finish` returns.

        width: how many to decode where there is room. The last one is repeated, and what is beyond
        it dropped again.
        """
        held = len(self.tokens)
        n, n_most = len(tokens), min(self.model.n_rows, self.model.n_ctx - held)
        width = max(n, min(width, n_most))
        padded = [*tokens, *[tokens[-1]] * (width - n)]
        self._written.extend(padded)
        started = time.perf_counter()
        self.model.start(padded, width)
        self._begun = _Begun(held + n, n, width, started, time.perf_counter())

    def finish(self, others_s: float = 0.0, *, slowed: bool = False) -> Rows:
        """Return the logits of the tokens of the last start, once they are computed.

        others_s: what others did meanwhile. It counts only as far as the decode took so long.
        slowed: by decodes beside it, so that the time it took tells nothing.
        """
        assert self._begun
        begun, self._begun = self._begun, None
        asked = time.perf_counter()
        rows = self.model.finish()
        ended = time.perf_counter()
        seconds = ended - begun.started
        if ended - asked < _READY_S < asked - begun.returned:  # nobody knows for how long already
            usual_s = min(seconds, self._usual_s.get(begun.width, seconds))
            self.seconds += max(seconds - others_s, usual_s)
            if self.costs:
                self.costs.observe(begun.width, min(seconds, self.costs.at(begun.width)))
        else:
            self.seconds += seconds
            self._usual_s[begun.width] = seconds
            if self.costs:
                self.costs.observe(begun.width, None if slowed else seconds)
        if begun.width > begun.n:
            self.rewind(begun.length)
        return rows[: begun.n]

    def abandon(self) -> None:
        """Wait for a decode that was started and not finished, if there is one; keep its tokens."""
        if self._begun:
            begun, self._begun = self._begun, None
            self.model.finish()
            self.rewind(begun.length)

    def adopt(self, tokens: Sequence[int]) -> bool:
        """Write down what the model holds by other means; where it is not so many, empty it."""
        held = self.model.length == len(tokens)
        if not held:
            self.model.truncate(0)
        self._written = list(tokens) if held else []
        return held

    def rewind(self, length: int) -> None:
        """Drop everything from position `length` on. Raises CannotRewind, with nothing changed."""
        if length < len(self.tokens):
            self.model.truncate(length)

    def sync(self, tokens: Sequence[int]) -> Iterator[int]:
        """Make the cache hold just these tokens, decoding only what it lacks.

        Yields the number of tokens it shares with them already, then, after each batch, the number
        it holds. A memory that cannot drop its end is emptied and filled again.
        """
        kept = common_prefix(self.tokens, tokens)
        try:
            self.rewind(kept)
        except CannotRewind:
            self.model.truncate(0)
            kept = 0
        yield kept
        while kept < len(tokens):
            step = tokens[kept : kept + self.model.n_batch]
            self.fill(step, 0)
            kept += len(step)
            yield kept
