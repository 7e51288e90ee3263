"""Accept or reject guesses so that what comes out has the target's own distribution.

Modified rejection sampling: Leviathan et al. 2023 (arXiv 2211.17192, appendix A.1) and Chen et al.
2023 (arXiv 2302.01318, theorem 1).
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
) -> Verdict:
    """Judge guesses by the target's logits.

    rows: (len(guesses) + 1, n_vocab), the target's logits before each guess and after the last.
    Accept a guess x with probability min(1, p(x) / q(x)); the first rejected one is replaced by a
    draw from the residual norm(max(0, p - q)). If all are accepted, draw a bonus token from p.
    """
    context = list(history)
    for i, guess in enumerate(guesses):
        p = sampler.dist(rows[i], context)
        q = guess.q or certain(guess.token)
        if rng.random() * q.prob(guess.token) >= p.prob(guess.token):
            return Verdict(i, residual(p, q).draw(rng))
        if guess.token in eog:
            return Verdict(i, guess.token)
        context.append(guess.token)
    return Verdict(len(guesses), sampler.dist(rows[len(guesses)], context).draw(rng))


def residual(p: Dist, q: Dist) -> Dist:
    """Return norm(max(0, p - q)), or p where rounding leaves nothing of it."""
    rest = p.p.copy()
    if p.ids is q.ids:
        rest -= q.p
    else:
        at = np.minimum(np.searchsorted(q.ids, p.ids), len(q.ids) - 1)
        shared = q.ids[at] == p.ids
        rest[shared] -= q.p[at[shared]]
    np.maximum(rest, 0.0, out=rest)
    total = float(rest.sum())
    if total <= 0.0:
        return p
    kept = np.flatnonzero(rest)
    return Dist(p.ids[kept], rest[kept] / total)
