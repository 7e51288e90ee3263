"""Accept or reject guesses so that what comes out has the target's own distribution.

Block verification: Sun et al. 2024 (arXiv 2403.10444, algorithm 2 and theorem 1). It judges a draft
as a whole and keeps at least as much of it as judging guess by guess does (docs/adr/0008).
"""

from collections.abc import Container, Sequence

import numpy as np

from specli.engine.types import Dist, Guess, Rows, Sampler, Verdict, certain


def verify(
    rows: Rows,
    guesses: Sequence[Guess],
    history: Sequence[int],
    sampler: Sampler,
    eog: Container[int],
    rng: np.random.Generator,
    ahead: Guess | None = None,
) -> Verdict:
    """Judge guesses by the target's logits.

    rows: (len(guesses) + 1, n_vocab), the target's logits before each guess and after the last.
    The first i guesses or more are kept with probability share_i = min(1, share_(i-1) p(x_i) /
    q(x_i)), share_0 = 1. After all of them comes a bonus token from p, after fewer a draw from the
    residual norm(max(0, share_i p - q)). How many guesses there are may depend on what they are:
    each prefix of them has its share whether another guess follows or not. ahead: what the bonus
    token should be, as often as it may.
    """
    n_judged = next((i + 1 for i, guess in enumerate(guesses) if guess.token in eog), len(guesses))
    context = list(history)
    share = 1.0
    seen: list[float] = []
    stop = None  # the longest prefix that is kept so far, and what it takes to go on from there
    for i, guess in enumerate(guesses[:n_judged]):
        probability, both = _seen(sampler.dist(rows[i], context), guess, share)
        seen.append(probability)
        shared, q = share * seen[-1], guess.q
        rest = share - both  # the residual's sum
        if stop is None or (rest > 0.0 and rng.random() < rest / (rest + (1.0 - share))):
            stop = i, q or certain(guess.token), share
        share = min(1.0, shared / q.prob(guess.token) if q else shared)
        if share == 0.0:
            break
        context.append(guess.token)
    if stop is not None and not rng.random() < share:
        n_kept, q, share = stop
        # p once more: held for so long it would take the others new memory, which is dearer.
        p = sampler.dist(rows[n_kept], [*history, *(guess.token for guess in guesses[:n_kept])])
        return Verdict(n_kept, residual(p, q, share).draw(rng), tuple(seen))
    if context[-1] in eog and n_judged:
        return Verdict(n_judged - 1, context[-1], tuple(seen))
    bonus = coupled(sampler.dist(rows[n_judged], context), ahead, rng)
    return Verdict(n_judged, bonus, tuple(seen))


def _seen(p: Dist, guess: Guess, share: float) -> tuple[float, float]:
    """Return p's probability of a guess, and the sum of min(share p, q)."""
    probability, q = p.prob(guess.token), guess.q
    if q is None:
        return probability, min(share * probability, 1.0)
    return probability, float(np.minimum(share * p.at(q.ids), q.p).sum())


def coupled(p: Dist, guess: Guess | None, rng: np.random.Generator) -> int:
    """Draw from p what a guess drawn from its q has guessed, as often as p allows.

    That is p's own distribution: what is accepted and what is drawn in place of the rest add up.
    """
    if guess is None:
        return p.draw(rng)
    q = guess.q or certain(guess.token)
    if rng.random() * q.prob(guess.token) < p.prob(guess.token):
        return guess.token
    return residual(p, q, 1.0).draw(rng)


def residual(p: Dist, q: Dist, share: float) -> Dist:
    """Return max(0, share p - q) as weights, or p where rounding leaves nothing of it."""
    rest = p.weights * (share / p.total)
    at, shared = p.find(q.ids)
    at = at[shared]
    rest[at] = np.maximum(rest[at] - q.p[shared], 0.0)
    return Dist(p.ids, rest) if rest.any() else p
