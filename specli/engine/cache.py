"""The tokens that a KV cache holds, and the two ways to change them: sync and rewind."""

import time
from collections.abc import Iterator, Sequence

from specli.engine.costs import CostCurve
from specli.engine.types import Model, Rows
from specli.errors import CannotRewind


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many leading tokens two sequences share."""
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    return next(i for i in range(n) if a[i] != b[i])


class Cache:
    """A model together with the tokens in its KV sequence.

    Tokens are written down before they are decoded and crossed out after they are dropped. So the
    model always holds a prefix of what is written, whatever interrupts, and its own length says
    how much of it is true.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.seconds = 0.0  # spent in decodes
        self.costs: CostCurve | None = None  # learns from decodes that return logits, and prompts
        self.ratios_of_rows: CostCurve | None = None  # to these, of fills that return many rows
        self._written: list[int] = []
        self._begun = 0.0, 0, 0, 0  # of the last start: when, tokens held, appended, decoded

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
        if self.costs and n_rows == 1:
            self.costs.observe(len(tokens), None if beside else seconds)
            if self.ratios_of_rows:
                self.ratios_of_rows.fade()
        elif self.costs and not n_rows:
            if not (beside or self.model.prepares or self.model.goes_on):  # a GPU is not waited for
                self.costs.read(len(tokens), seconds)
        elif self.costs and self.ratios_of_rows:
            self.ratios_of_rows.observe(len(tokens), seconds / self.costs.at(len(tokens)))
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
        self._begun = time.perf_counter(), held, n, width
        self.model.start(padded, width)

    def finish(self, *, slowed: bool = False) -> Rows:
        """Return the logits of the tokens of the last start, once they are computed.

        slowed: by decodes beside it, so that the time it took tells nothing.
        """
        started, held, n, width = self._begun
        rows = self.model.finish()
        seconds = time.perf_counter() - started
        self.seconds += seconds
        if self.costs:
            self.costs.observe(width, None if slowed else seconds)
        self.rewind(held + n)
        return rows[:n]

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
