"""Verifiers that are wrong in the ways that are easiest to get wrong."""

from collections.abc import Container, Sequence

import numpy as np

from specli.engine.types import Guess, Rows, Sampler, Verdict, certain

FAULTS = ["swaps p and q", "accepts everything", "draws from p instead of the residual"]


class Faulty:
    """Stands in for specli.engine.verify.verify; judges guess by guess."""

    def __init__(self, fault: str) -> None:
        assert fault in FAULTS
        self._fault = fault

    def __call__(
        self,
        rows: Rows,
        guesses: Sequence[Guess],
        history: Sequence[int],
        sampler: Sampler,
        eog: Container[int],
        rng: np.random.Generator,
        ahead: Guess | None = None,
    ) -> Verdict:
        context = list(history)
        for i, guess in enumerate(guesses):
            p = sampler.dist(rows[i], context)
            ratio = p.prob(guess.token) / (guess.q or certain(guess.token)).prob(guess.token)
            if self._fault == "accepts everything":
                ratio = 1.0
            elif self._fault == "swaps p and q":
                ratio = 1 / ratio if ratio else 1.0
            if rng.random() >= ratio:
                return Verdict(i, p.draw(rng))
            context.append(guess.token)
            if guess.token in eog:
                return Verdict(i, guess.token)
        return Verdict(len(guesses), sampler.dist(rows[len(guesses)], context).draw(rng))
