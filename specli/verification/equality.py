"""Greedy equality: token by token, up to what rounding does to the two best logits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specli.engine.cache import common_prefix
from specli.engine.decode import Decoder
from specli.engine.types import Row
from specli.verification.plain import Target, rounds_of

# Times the noise that is seen at an answer's positions: a tie is what noise of this size decides.
_TIE = 2.0
# Logits. However large the noise, a larger margin between two tokens is no tie.
LARGEST_TIE = 1.0
_FEW = 4  # tokens that may be tied


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a speculative answer left the plain one.

    at: tokens of the answer before it. speculative: None where it ended there. margin: between the
    logits of the two tokens, decoded plainly; None where one is not among the best few, best_margin
    between those of the two best tokens. tolerance: the largest margin that rounding explains.
    """

    at: int
    plain: int
    speculative: int | None
    margin: float | None
    best_margin: float
    tolerance: float

    @property
    def explained(self) -> bool:
        """Whether the two tokens were as good as tied."""
        return self.margin is not None and self.margin <= self.tolerance


@dataclass(frozen=True, slots=True)
class Comparison:
    """One prompt, answered greedily both ways.

    n_compared: tokens of the plain answer that the speculative one was held against. noise: by how
    many logits decoding n_rows at a time changed a margin between the best tokens at most.
    """

    id: str
    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    n_compared: int
    n_drafted: int
    n_accepted: int
    noise: float
    n_rows: int
    divergences: tuple[Divergence, ...]

    @property
    def failure(self) -> Divergence | None:
        """The divergence that nothing explains, if there is one."""
        return next((parted for parted in self.divergences if not parted.explained), None)


@dataclass(frozen=True, slots=True)
class _Best:
    """The likeliest tokens of a row, the best first, and how far below it the others are, (n,)."""

    tokens: NDArray[np.intp]
    below: NDArray[np.float32]

    def margin(self, token: int | None) -> float | None:
        """Return how far below the best a token is; None where it is not among these."""
        found = np.flatnonzero(self.tokens == token)
        return float(self.below[found[0]]) if len(found) else None


def compare(
    prompt_id: str,
    decoder: Decoder,
    target: Target,
    prompt: Sequence[int],
    max_tokens: int,
) -> Comparison:
    """Answer a prompt plainly and speculatively, both greedily.

    After a divergence that is explained the speculative answer goes on from the plain one. Raises
    Interrupted.
    """
    target.forget()
    plain, best = _plain(target, prompt, max_tokens)
    rounds = rounds_of(decoder, prompt, len(plain))
    n_rows = min(max(2, *(done.n_drafted + 1 for done in rounds)), target.cache.model.n_rows)
    noise = _noise(target, prompt, plain, best, n_rows)
    tolerance = min(_TIE * noise, LARGEST_TIE)
    got = [token for done in rounds for token in done.tokens]
    divergences: list[Divergence] = []
    at = common_prefix(plain, got)
    while at < len(plain):
        said = got[at] if at < len(got) else None
        margins = best[at].margin(said), float(best[at].below[1])
        parted = Divergence(at, plain[at], said, *margins, tolerance)
        divergences.append(parted)
        at += 1
        if not parted.explained or at == len(plain):
            break
        rest = rounds_of(decoder, [*prompt, *plain[:at]], len(plain) - at)
        rounds += rest
        got = [*plain[:at], *(token for done in rest for token in done.tokens)]
        at = common_prefix(plain, got)
    return Comparison(
        prompt_id,
        tuple(prompt),
        tuple(plain),
        at,
        sum(done.n_drafted for done in rounds),
        sum(done.n_accepted for done in rounds),
        noise,
        n_rows,
        tuple(divergences),
    )


def _plain(target: Target, prompt: Sequence[int], max_tokens: int) -> tuple[list[int], list[_Best]]:
    """Return the plain answer and the best of each of its rows."""
    plain: list[int] = []
    best: list[_Best] = []
    for token, row in target.decode(prompt, max_tokens, np.random.default_rng(0)):
        best.append(_best(target.sampler.logits(row, [*prompt, *plain])))
        plain.append(token)
    return plain, best


def _best(logits: Row) -> _Best:
    few = min(_FEW, len(logits))
    tokens = logits.argpartition(-few)[-few:]
    tokens = tokens[np.argsort(-logits[tokens], kind="stable")]
    return _Best(tokens, logits[tokens[0]] - logits[tokens])


def _noise(
    target: Target, prompt: Sequence[int], answer: Sequence[int], best: list[_Best], n_rows: int
) -> float:
    """Return the largest change of a margin where n_rows are decoded at a time."""
    largest = 0.0
    for i, (one, row) in enumerate(zip(best, target.read(prompt, answer, n_rows), strict=True)):
        logits = target.sampler.logits(row, [*prompt, *answer[:i]])[one.tokens]
        largest = max(largest, float(np.abs(logits[0] - logits - one.below).max()))
    return largest
