"""Verification is exact: every chance of a round is tried, and what comes out is added up.

The random numbers of a round are replaced by forks: each comparison with one, and each draw from a
distribution, goes all its ways, weighted with their probabilities. So no statistics are needed.
"""

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from specli.engine import verify as module
from specli.engine.types import Dist, Guess, Verdict, certain
from specli.engine.verify import verify
from tests.fakes import FakeModel, FakeSampler

GREEDY = FakeSampler(temperature=0.0)
HISTORY = [0, 1]
N_VOCAB = 4


class Fork:
    """A random generator that takes one way after the other.

    After a run, weight is its probability, and `next_way` says whether another way is left.
    """

    def __init__(self) -> None:
        self._ways: list[tuple[int, int]] = []  # the way taken and how many there are, per decision
        self._at = 0
        self.weight = 1.0

    def choose(self, p: Sequence[float]) -> int:
        """Take one of the ways that have a probability above 0."""
        possible = [i for i, each in enumerate(p) if each > 0]
        if self._at == len(self._ways):
            self._ways.append((0, len(possible)))
        way = possible[self._ways[self._at][0]]
        self._at += 1
        self.weight *= p[way]
        return way

    def random(self) -> "Fork":
        return self

    def __lt__(self, chance: float) -> bool:
        chance = min(max(chance, 0.0), 1.0)
        return self.choose([1.0 - chance, chance]) == 1

    def next_way(self) -> bool:
        self._at, self.weight = 0, 1.0
        while self._ways and self._ways[-1][0] + 1 == self._ways[-1][1]:
            self._ways.pop()
        if self._ways:
            way, n = self._ways.pop()
            self._ways.append((way + 1, n))
        return bool(self._ways)


def draw(dist: Dist, rng: Any) -> int:
    if not isinstance(rng, Fork):
        return drawn(dist, rng)
    p = dist.p / dist.p.sum()
    return int(dist.ids[rng.choose(p.tolist())])


drawn = Dist.draw


@pytest.fixture(autouse=True)
def _forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dist, "draw", draw)


Length = Callable[[list[Guess], Dist], bool]  # guesses so far and the next q: is another wanted?
Draft = Callable[[list[int]], Dist | int]  # history: what to draw the next guess from, or the guess


def always(guesses: list[Guess], q: Dist) -> bool:
    return True


def by_tokens(guesses: list[Guess], q: Dist) -> bool:
    return not guesses or guesses[-1].token % 2 == 0


def by_confidence(guesses: list[Guess], q: Dist) -> bool:
    return bool(q.p.max() > 0.45)


def by_both(guesses: list[Guess], q: Dist) -> bool:
    return sum(guess.token for guess in guesses) < 4 or bool(q.p.max() > 0.6)


LENGTHS: list[Length] = [always, by_tokens, by_confidence, by_both]


def drafted(draft: Draft, length: Length, k: int, rng: Any) -> list[Guess]:
    guesses: list[Guess] = []
    while len(guesses) < k:
        q = draft([*HISTORY, *(guess.token for guess in guesses)])
        known = certain(q) if isinstance(q, int) else q
        if not length(guesses, known):
            break
        token = known.draw(rng)
        guesses.append(Guess(token, None if isinstance(q, int) else q, float(known.p.max())))
    return guesses


def outcomes(
    draft: Draft,
    target: FakeModel,
    sampler: FakeSampler,
    length: Length = always,
    k: int = 3,
    eog: frozenset[int] = frozenset(),
    judge: Callable[..., Verdict] = verify,
) -> Iterator[tuple[float, tuple[int, ...], Verdict]]:
    """Yield probability, tokens and verdict of all ways that a round can take."""
    fork = Fork()
    while True:
        guesses = drafted(draft, length, k, fork)
        tokens = [guess.token for guess in guesses]
        ends = range(len(HISTORY), len(HISTORY) + len(guesses) + 1)
        rows = np.array([target.row([*HISTORY, *tokens][:end]) for end in ends])
        verdict = judge(rows, guesses, HISTORY, sampler, eog, fork)
        yield fork.weight, (*tokens[: verdict.n_accepted], verdict.token), verdict
        if not fork.next_way():
            return


def joint(
    target: FakeModel,
    sampler: FakeSampler,
    n: int,
    eog: frozenset[int],
    start: tuple[int, ...] = (),
) -> dict[tuple[int, ...], float]:
    """Return the target's exact distribution of texts of n tokens that begin with `start`."""
    if len(start) >= n or (start and start[-1] in eog):
        return {start: 1.0}
    history = [*HISTORY, *start]
    p = sampler.dist(target.row(history), history)
    texts = {}
    for token, chance in zip(p.ids.tolist(), p.p.tolist(), strict=True):
        for text, rest in joint(target, sampler, n, eog, (*start, token)).items():
            texts[text] = chance * rest
    return texts


def error(
    draft: Draft,
    target: FakeModel,
    sampler: FakeSampler,
    length: Length = always,
    k: int = 3,
    eog: frozenset[int] = frozenset(),
    judge: Callable[..., Verdict] = verify,
) -> float:
    """Return how far a round, continued by the target alone, is from the target alone."""
    got: dict[tuple[int, ...], float] = defaultdict(float)
    for weight, tokens, _ in outcomes(draft, target, sampler, length, k, eog, judge):
        for text, rest in joint(target, sampler, k + 1, eog, tokens).items():
            got[text] += weight * rest
    wanted = joint(target, sampler, k + 1, eog)
    return max(abs(got[text] - wanted.get(text, 0.0)) for text in {*got, *wanted})


def by_model(seed: int, sampler: FakeSampler, noise: float = 1.0) -> Draft:
    model = FakeModel(seed, N_VOCAB, spread=1.0, noise=noise)
    return lambda history: sampler.dist(model.row(history), history)


def ngram(history: list[int]) -> int:
    return (history[-2] + 1) % N_VOCAB


def mixed(history: list[int]) -> Dist | int:
    """Guess for sure after some texts, draw after others."""
    return ngram(history) if history[-1] % 2 else by_model(5, FakeSampler(1.2))(history)


def elsewhere(history: list[int]) -> Dist:
    """Draw from tokens of which the target knows some only: see FakeSampler(top_k=2)."""
    token = history[-1] % 2
    return Dist(np.array([token, token + 2], np.int32), np.array([0.3, 0.7]))


DRAFTS: dict[str, Draft] = {
    "close": by_model(5, FakeSampler(1.0), 0.3),
    "far": by_model(9, FakeSampler(1.0)),
    "the target": by_model(5, FakeSampler(1.0), 0.0),
    "cold": by_model(5, FakeSampler(0.4)),
    "hot": by_model(5, FakeSampler(3.0)),
    "truncated": by_model(5, FakeSampler(1.0, top_k=2)),
    "arg-max": by_model(5, GREEDY),
    "ngram": ngram,
    "mixed": mixed,
    "elsewhere": elsewhere,
}
SAMPLERS = [FakeSampler(1.0), FakeSampler(0.6, top_k=3), FakeSampler(1.0, top_k=2), GREEDY]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("draft", DRAFTS)
def test_a_round_has_the_distribution_of_the_target(
    draft: str, sampler: FakeSampler, length: Length
) -> None:
    target = FakeModel(5, N_VOCAB, spread=1.0)
    assert error(DRAFTS[draft], target, sampler, length) < 1e-12


@pytest.mark.parametrize("draft", ["far", "mixed", "ngram"])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_an_accepted_end_of_generation_ends_the_round(draft: str, sampler: FakeSampler) -> None:
    target, eog = FakeModel(5, N_VOCAB, spread=1.0), frozenset({2})
    assert error(DRAFTS[draft], target, sampler, eog=eog) < 1e-12
    for _, tokens, verdict in outcomes(DRAFTS[draft], target, sampler, eog=eog):
        assert 2 not in tokens[:-1]
        assert len(tokens) == verdict.n_accepted + 1


@pytest.mark.parametrize("draft", DRAFTS)
def test_at_temperature_0_guesses_are_kept_up_to_the_first_that_is_wrong(draft: str) -> None:
    target = FakeModel(5, N_VOCAB, spread=1.0)
    (wanted,) = joint(target, GREEDY, 4, frozenset())
    for _, tokens, _ in outcomes(DRAFTS[draft], target, GREEDY):
        assert tokens == wanted[: len(tokens)]
    guesses = [Guess(token, None, 0.5) for token in [*wanted[:2], (wanted[2] + 1) % N_VOCAB]]
    rows = np.array([target.row([*HISTORY, *wanted[:n]]) for n in range(4)])
    assert verify(rows, guesses, HISTORY, GREEDY, (), np.random.default_rng(0)) == Verdict(
        2, wanted[2], (1.0, 1.0, 0.0)
    )


def one_by_one(
    rows: Any, guesses: Any, history: Any, sampler: FakeSampler, eog: Any, rng: Any
) -> Verdict:
    """Judge guess by guess: Leviathan et al. 2023 (arXiv 2211.17192)."""
    context = list(history)
    for i, guess in enumerate(guesses):
        p, q = sampler.dist(rows[i], context), guess.q or certain(guess.token)
        if not rng.random() < p.prob(guess.token) / q.prob(guess.token):
            return Verdict(i, module.residual(p, q, 1.0).draw(rng))
        context.append(guess.token)
    return Verdict(len(guesses), sampler.dist(rows[-1], context).draw(rng))


@pytest.mark.parametrize("draft", DRAFTS)
def test_at_least_as_much_is_kept_as_guess_by_guess(draft: str) -> None:
    target, sampler = FakeModel(5, N_VOCAB, spread=1.0), FakeSampler(1.0)
    kept = [
        sum(
            p * verdict.n_accepted
            for p, _, verdict in outcomes(DRAFTS[draft], target, sampler, judge=judge)
        )
        for judge in (verify, one_by_one)
    ]
    assert error(DRAFTS[draft], target, sampler, judge=one_by_one) < 1e-12
    assert kept[0] >= kept[1] - 1e-12
    if draft in ("close", "far", "hot"):
        assert kept[0] > 1.02 * kept[1]


MUTATIONS = {
    "swaps p and q": (
        "shared / q.prob(guess.token)",
        "share * q.prob(guess.token) / seen[-1]",
    ),
    "accepts everything": ("not rng.random() < share", "False"),
    "accepts nothing": ("not rng.random() < share", "True"),
    "draws from p": ("residual(p, q, share).draw", "p.draw"),
    "forgets the share": ("residual(p, q, share).draw", "residual(p, q, 1.0).draw"),
    "judges guess by guess, but keeps the share": ("rng.random() < rest", "0.5 < rest"),
    "stops where it should not": ("rest / (rest + (1.0 - share))", "rest"),
    "forgets the share of the guesses before": ("share * seen[-1]", "seen[-1]"),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_verifier_is_noticed(mutation: str) -> None:
    source, broken = inspect.getsource(module), ModuleType("broken")
    old, new = MUTATIONS[mutation]
    assert old in source
    exec(source.replace(old, new), vars(broken))
    target = FakeModel(5, N_VOCAB, spread=1.0)
    assert error(DRAFTS["far"], target, FakeSampler(1.0), judge=broken.verify) > 1e-3


def test_dropping_a_guess_for_its_token_is_noticed() -> None:
    """The trap that Guess.confidence warns of."""

    def judge(rows: Any, guesses: list[Guess], *rest: Any) -> Verdict:
        n = next((i for i, guess in enumerate(guesses) if guess.token == 1), len(guesses))
        return verify(rows[: n + 1], guesses[:n], *rest)

    target = FakeModel(5, N_VOCAB, spread=1.0)
    assert error(DRAFTS["far"], target, FakeSampler(1.0), judge=judge) > 1e-3
