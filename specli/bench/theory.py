"""What speculation should bring, by the formula everybody quotes.

Leviathan et al. 2022 (arXiv 2211.17192, theorem 3.8), with a target pass of its own price: k
guesses, of which each is right with probability a, bring (1 - a^(k+1)) / (1 - a) tokens for
c k + v, in passes of one token. c is the price of a guess, v that of a pass over k + 1 tokens.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from specli.bench.records import Run
from specli.engine.costs import CostCurve


@dataclass(frozen=True, slots=True)
class Mix:
    """The rounds of some runs. ks: how many rounds had so many guesses. a: how often one is right.

    drafted_share: of the guesses, those of a draft model; the others cost nothing.
    """

    ks: Mapping[int, int]
    a: float
    drafted_share: float


def mix(runs: Iterable[Run]) -> Mix | None:
    """Return what rounds there were; None where nothing was guessed.

    a is the share of those guesses that were right after right ones: what stands behind a wrong
    one says nothing.
    """
    ks: Counter[int] = Counter()
    n_accepted = n_judged = n_drafted = n_guesses = 0
    for run in runs:
        rounds = run.rounds
        ks.update(rounds.n_drafted)
        n_guesses += sum(rounds.n_drafted)
        n_drafted += sum(source.count("d") for source in rounds.sources)
        for drafted, accepted in zip(rounds.n_drafted, rounds.n_accepted, strict=True):
            n_accepted += accepted
            n_judged += min(drafted, accepted + 1)
    if not n_judged:
        return None
    return Mix(ks, n_accepted / n_judged, n_drafted / n_guesses)


def tokens(a: float, k: float) -> float:
    """Return how many tokens a round of k guesses brings."""
    return k + 1 if a >= 1 else (1 - a ** (k + 1)) / (1 - a)


def speed_up(
    a: float, ks: Mapping[int, int], draft_s: float, target_s: Mapping[int, float]
) -> float:
    """Return how many times as fast as plain decoding rounds of these numbers of guesses are.

    draft_s: of one guess. target_s: of a pass over n tokens, for 1 and some more.
    """
    brought = sum(n * tokens(a, k) for k, n in ks.items())
    pass_s = CostCurve(target_s)
    taken = sum(n * (draft_s * k + pass_s.at(k + 1)) for k, n in ks.items())
    return brought * target_s[1] / taken
