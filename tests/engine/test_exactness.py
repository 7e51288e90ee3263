"""Speculation changes nothing: greedy equality, and the joint distribution of three tokens."""

import itertools
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from specli.engine import decode
from specli.engine.acceptance import GREEDY_RATES, TRUE_RATES, Acceptance
from specli.engine.costs import CostCurve
from specli.engine.decode import Decoder
from specli.engine.planner import AutoPlanner
from specli.engine.types import Planner, Round
from tests.fakes import FakeModel, FakeSampler, generated, make_decoder, walk
from tests.faults import FAULTS, Faulty

GREEDY = FakeSampler(temperature=0.0)
PROMPT = [1, 2, 3, 1, 2]
DRAFTS = ["same", "close", "far", "ngram"]


def draft_for(kind: str, seed: int, n_vocab: int = 5) -> FakeModel | str:
    noise = {"same": 0.0, "close": 0.8}
    if kind in noise:
        return FakeModel(seed, n_vocab, noise=noise[kind])
    return FakeModel(seed + 1000, n_vocab) if kind == "far" else kind


@pytest.mark.parametrize("kind", DRAFTS)
@pytest.mark.parametrize("k", [0, 1, 2, 4, 8, 16])
def test_greedy_equals_plain(kind: str, k: int) -> None:
    for seed, length in itertools.product(range(5), (1, 2, 7, 40)):
        plain = generated(make_decoder(FakeModel(seed, 9), "none", 0, GREEDY), PROMPT, length)
        decoder = make_decoder(FakeModel(seed, 9), draft_for(kind, seed, 9), k, GREEDY)
        assert generated(decoder, PROMPT, length) == plain
        assert len(plain) == length


def auto() -> AutoPlanner:
    """Return a planner to whom guesses are cheap, so that it takes many and drops some."""
    acceptance = {"draft": Acceptance(GREEDY_RATES), "ngram": Acceptance(TRUE_RATES)}
    draft, ratios = CostCurve({1: 0.1, 64: 0.3}), CostCurve({1: 1.0, 64: 1.0})  # it reads along
    return AutoPlanner(CostCurve({1: 1.0, 64: 20.0}), draft, acceptance, ratios)


@pytest.mark.parametrize("kind", DRAFTS)
def test_greedy_equals_plain_with_a_planner(kind: str) -> None:
    n_drafted: Counter[int] = Counter()
    for seed in range(20):
        plain = generated(make_decoder(FakeModel(seed, 9), "none", 0, GREEDY), PROMPT, 40)
        decoder = make_decoder(FakeModel(seed, 9), draft_for(kind, seed, 9), auto(), GREEDY)
        rounds = [event for event in decoder.generate(PROMPT, 40) if isinstance(event, Round)]
        assert [token for done in rounds for token in done.tokens] == plain
        n_drafted.update(done.n_drafted for done in rounds)
    assert len(n_drafted) > 3  # it did choose


@pytest.mark.parametrize("kind", DRAFTS)
def test_greedy_ends_at_the_same_end_of_generation(kind: str) -> None:
    for seed in range(20):
        plain = generated(make_decoder(FakeModel(seed, 9), "none", 0, GREEDY), PROMPT, 40)
        eog = frozenset({plain[seed]})  # a token that the model does emit, often inside a draft
        wanted = plain[: plain.index(plain[seed]) + 1]
        draft = draft_for(kind, seed, 9)
        decoder = make_decoder(FakeModel(seed, 9), draft, 6, GREEDY, eog=eog)
        rounds = [event for event in decoder.generate(PROMPT, 40) if isinstance(event, Round)]
        assert [token for done in rounds for token in done.tokens] == wanted
        assert len(wanted) == len(rounds) + sum(done.n_accepted for done in rounds)


def joint(target: FakeModel, sampler: FakeSampler) -> NDArray[np.float64]:
    """Return the exact probability of each triple of tokens after the prompt."""
    p = []
    for triple in walk(target.n_vocab):
        history, product = list(PROMPT), 1.0
        for token in triple:
            product *= sampler.dist(target.row(history), history).prob(token)
            history.append(token)
        p.append(product)
    return np.array(p)


def p_value(
    target: FakeModel,
    draft: FakeModel | str,
    sampler: FakeSampler,
    draft_sampler: FakeSampler | None = None,
    n: int = 2000,
    plan: int | Planner = 3,
) -> float:
    """Test n generated triples against the exact distribution; return the p value."""
    decoder = make_decoder(target, draft, plan, sampler, 7, draft_sampler=draft_sampler)
    return p_value_of(decoder, sampler, n)


def p_value_of(decoder: Decoder, sampler: FakeSampler, n: int = 2000) -> float:
    """Test n triples of a decoder whose target draws as the sampler does."""
    target = decoder.target.model
    assert isinstance(target, FakeModel)
    exact = joint(target, sampler)
    index = {triple: i for i, triple in enumerate(walk(target.n_vocab))}
    counts = np.zeros(len(exact))
    for _ in range(n):
        counts[index[tuple(generated(decoder, PROMPT, 3))]] += 1
    assert not counts[exact == 0].any(), "a token that the sampler had ruled out"
    common = exact * n >= 5  # a chi-square cell needs five expected draws: pool the rare ones
    observed = [*counts[common], counts[~common].sum()]
    expected = [*(exact[common] * n), exact[~common].sum() * n]
    if expected[-1] < 5:
        observed[-2:] = [sum(observed[-2:])]
        expected[-2:] = [sum(expected[-2:])]
    return float(chisquare(observed, expected, sum_check=False).pvalue)


SAMPLERS = [
    FakeSampler(0.5),
    FakeSampler(1.5),
    FakeSampler(1.0, top_k=3),
    FakeSampler(1.3, top_k=4, top_p=0.85),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("kind", ["stochastic", "greedy", "other temperature", "ngram"])
def test_joint_distribution_of_three_tokens(kind: str, sampler: FakeSampler) -> None:
    target = FakeModel(3, 4, spread=1.0)
    draft: FakeModel | str = "ngram" if kind == "ngram" else FakeModel(3, 4, spread=1.0, noise=1.5)
    own = {"greedy": GREEDY, "other temperature": FakeSampler(0.7)}.get(kind)
    assert p_value(target, draft, sampler, own) > 1e-4


@pytest.mark.parametrize("sampler", SAMPLERS[1::2], ids=str)
@pytest.mark.parametrize("kind", ["close", "far", "ngram"])
def test_joint_distribution_with_a_planner(kind: str, sampler: FakeSampler) -> None:
    """Guesses of both kinds, dropped by their confidence, kept or not in blocks of any length."""
    target = FakeModel(3, 4, spread=1.0)
    draft: FakeModel | str = "ngram"
    if kind != "ngram":
        draft = FakeModel(3, 4, spread=1.0, noise={"close": 0.7, "far": 3.0}[kind])
    assert p_value(target, draft, sampler, plan=auto()) > 1e-4


@pytest.mark.parametrize("fault", FAULTS)
def test_the_distribution_test_catches_a_broken_verifier(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above is worth something only if it fails where it should."""
    monkeypatch.setattr(decode, "verify", Faulty(fault))
    draft = FakeModel(3, 4, spread=1.0, noise=1.5)
    assert p_value(FakeModel(3, 4, spread=1.0), draft, FakeSampler(1.0)) < 1e-6


def test_a_draft_that_is_the_target_is_always_right() -> None:
    for sampler in (GREEDY, FakeSampler(1.0)):
        decoder = make_decoder(FakeModel(1), FakeModel(1), 4, sampler)
        rounds = [event for event in decoder.generate(PROMPT, 500) if isinstance(event, Round)]
        assert all(len(done.tokens) == 5 for done in rounds)
        assert len(rounds) == 100
