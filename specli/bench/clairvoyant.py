"""The least time for a text when it is known beforehand how far each guess will be right.

Each round takes the guesses of one drafter, made one by one. Hardly a planner can be faster with
the same drafters on the same machine, so the share of it that one reaches says how much is left to
gain, whatever the machine does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from specli.engine.costs import N_MAX

NGRAM_SIZES = range(8, 1, -1)


@dataclass(frozen=True, slots=True)
class Costs:
    """What one pass costs. target_s: seconds by rows, from 1 on. draft_s: of one guess."""

    target_s: Mapping[int, float]
    draft_s: float

    def envelope(self) -> list[float]:
        """Return the seconds of a pass of at least n rows, from n = 1 on (at index n - 1).

        Between measured sizes lies a straight line. A pass of more rows can be the cheaper one: the
        rows that it has too many are left unused.
        """
        rows = sorted(self.target_s)
        n = np.arange(1, min(N_MAX, rows[-1]) + 1)
        seconds = np.interp(n, rows, [self.target_s[some] for some in rows])
        least: list[float] = np.minimum.accumulate(seconds[::-1])[::-1].tolist()
        return least


def least_seconds(costs: Costs, model: Sequence[int], ngram: Sequence[int]) -> float:
    """Return the least time for a text of len(model) tokens, by dynamic programming.

    model, ngram: how many guesses of each drafter are right in a row, at each position of the text.
    A round takes k right guesses of one drafter and one token of the target. The model's cost
    draft_s each, the n-gram's nothing.
    """
    passes = costs.envelope()
    n = len(model)
    best = [0.0] * (n + 1)  # seconds from position t to the end
    for t in range(n - 1, -1, -1):
        right = max(model[t], ngram[t])
        best[t] = min(
            best[t + k + 1] + passes[k] + (0.0 if k <= ngram[t] else k * costs.draft_s)
            for k in range(min(right, n - t - 1, len(passes) - 1) + 1)
        )
    return best[0]


def runs_of_right(right: Sequence[bool]) -> list[int]:
    """Return how many guesses in a row are right from each position on."""
    lengths = [0] * (len(right) + 1)
    for t in range(len(right) - 1, -1, -1):
        lengths[t] = lengths[t + 1] + 1 if right[t] else 0
    return lengths[:-1]


def ngram_lengths(prompt: Sequence[int], answer: Sequence[int]) -> list[int]:
    """Return how many tokens an n-gram drafter guesses right at each position of an answer.

    It continues an earlier occurrence of the longest suffix of 2 to 8 tokens that has one: the
    latest, or the latest of those followed by the token that most often followed it, whichever is
    right for longer. That is the better of two drafters, as a bound may have it.
    """
    tokens = [*prompt, *answer]
    followers: dict[tuple[int, ...], list[int]] = {}
    lengths = []
    for at in range(1, len(tokens)):
        if at >= len(prompt):
            suffixes = (tuple(tokens[at - n : at]) for n in NGRAM_SIZES if at >= n)
            found = next((f for suffix in suffixes if (f := followers.get(suffix))), [])
            lengths.append(
                max((_right(tokens, at, f) for f in _candidates(tokens, found)), default=0)
            )
        for n in NGRAM_SIZES:
            if at >= n:
                followers.setdefault(tuple(tokens[at - n : at]), []).append(at)
    return lengths


def _candidates(tokens: Sequence[int], found: Sequence[int]) -> set[int]:
    """Return the latest position, and the latest of those with the commonest token."""
    if not found:
        return set()
    following = [tokens[at] for at in found]
    commonest = max(reversed(following), key=following.count)
    return {found[-1], max(at for at in found if tokens[at] == commonest)}


def _right(tokens: Sequence[int], at: int, source: int) -> int:
    """Return how many tokens from `source` on are those from `at` on, at most as a pass takes."""
    n = 0
    while n < N_MAX and at + n < len(tokens) and tokens[source + n] == tokens[at + n]:
        n += 1
    return n
