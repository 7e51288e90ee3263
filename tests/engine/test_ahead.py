"""Drafting while the target decodes: the text stays what it is, and guesses come for nothing."""

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from specli.engine.cache import Cache
from specli.engine.costs import CostCurve
from specli.engine.decode import Decoder
from specli.engine.drafters import ModelDrafter
from specli.engine.fixed import FixedPlanner
from specli.engine.planner import AutoPlanner
from specli.engine.types import Dist, End, Guess, Round, certain
from specli.engine.verify import coupled
from specli.errors import DecodeError
from tests.engine.test_exactness import DRAFTS, GREEDY, PROMPT, SAMPLERS, auto, draft_for, p_value
from tests.fakes import FakeModel, FakeSampler, generated, make_decoder


def on_gpu(seed: int, n_vocab: int = 9, spread: float = 2.0) -> FakeModel:
    model = FakeModel(seed, n_vocab, spread=spread)
    model.goes_on = True
    return model


def rounds_of(decoder: Decoder, n: int) -> list[Round]:
    return [event for event in decoder.generate(PROMPT, n) if isinstance(event, Round)]


@pytest.mark.parametrize("kind", DRAFTS)
@pytest.mark.parametrize("k", [1, 2, 4, 16, None])
def test_greedy_equals_plain(kind: str, k: int | None) -> None:
    for seed, length in itertools.product(range(5), (1, 2, 7, 40)):
        plain = generated(make_decoder(FakeModel(seed, 9), "none", 0, GREEDY), PROMPT, length)
        draft, plan = draft_for(kind, seed, 9), auto() if k is None else k
        decoder = make_decoder(on_gpu(seed), draft, plan, GREEDY)
        assert generated(decoder, PROMPT, length) == plain


@pytest.mark.parametrize("kind", DRAFTS)
def test_greedy_ends_at_the_same_end_of_generation(kind: str) -> None:
    for seed in range(20):
        plain = generated(make_decoder(FakeModel(seed, 9), "none", 0, GREEDY), PROMPT, 40)
        eog = frozenset({plain[seed]})
        wanted = plain[: plain.index(plain[seed]) + 1]
        decoder = make_decoder(on_gpu(seed), draft_for(kind, seed, 9), auto(), GREEDY, eog=eog)
        assert generated(decoder, PROMPT, 40) == wanted


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("kind", ["stochastic", "greedy", "other temperature"])
@pytest.mark.parametrize("k", [1, None])
def test_joint_distribution_of_three_tokens(kind: str, k: int | None, sampler: FakeSampler) -> None:
    """With one guess a round, the second token is the target's own, the third guessed ahead."""
    draft = FakeModel(3, 4, spread=1.0, noise=1.5)
    own = {"greedy": GREEDY, "other temperature": FakeSampler(0.7)}.get(kind)
    target = on_gpu(3, 4, spread=1.0)
    assert p_value(target, draft, sampler, own, plan=auto() if k is None else k) > 1e-4


@pytest.mark.parametrize("is_drawn", [True, False])
def test_the_targets_own_token_has_its_own_distribution(is_drawn: bool) -> None:
    rng = np.random.default_rng(1)
    p = Dist(np.array([0, 1, 2, 5], np.int32), np.array([0.5, 0.3, 0.15, 0.05]))
    q = Dist(np.array([1, 2, 4], np.int32), np.array([0.2, 0.7, 0.1]))
    counts = np.zeros(6)
    n_same = 0
    for _ in range(20_000):
        guess = Guess(q.draw(rng), q, 0.7) if is_drawn else Guess(1, None, 0.7)
        token = coupled(p, guess, rng)
        counts[token] += 1
        n_same += token == guess.token
    assert counts[[3, 4]].sum() == 0
    assert chisquare(counts[p.ids], p.p * counts.sum()).pvalue > 1e-4
    # as often as any coupling of both can: the overlap of p and q, or what p gives to the guess
    assert n_same / counts.sum() == pytest.approx(0.35 if is_drawn else 0.3, abs=0.015)


def test_without_a_guess_the_token_is_drawn() -> None:
    assert coupled(certain(3), None, np.random.default_rng(1)) == 3


def test_what_is_guessed_ahead_saves_decodes_of_the_draft() -> None:
    n_decodes = {}
    for goes_on in (False, True):
        target, draft = FakeModel(1, 9), FakeModel(1, 9)
        target.goes_on = goes_on
        assert generated(make_decoder(target, draft, 3, GREEDY), PROMPT, 81)
        n_decodes[goes_on] = draft.n_decodes, target.n_decodes
    # the draft is never wrong: three guesses and a token of the target in a round
    n_rounds = 81 // 4
    assert n_decodes[False] == pytest.approx((3 * n_rounds, n_rounds), abs=3)
    assert n_decodes[True] == pytest.approx((4 * n_rounds, n_rounds), abs=4)  # none waited for


class Unhurried(FixedPlanner):
    """Goes ahead by three guesses."""

    def goes_ahead(self, n_ahead: int, width: int, seconds: float) -> bool:
        return n_ahead < 3


@pytest.mark.parametrize("noise", [0.0, 0.8])
def test_guesses_ahead_begin_the_next_round_where_they_came_true(noise: float) -> None:
    target, draft = on_gpu(1), FakeModel(1, 9, noise=noise)
    decoder = make_decoder(target, draft, Unhurried(4), GREEDY)
    assert isinstance(decoder.drafter, ModelDrafter)
    n_before, n_new = draft.n_decodes, []
    for event in decoder.generate(PROMPT, 60):
        if isinstance(event, Round):
            n_new.append(draft.n_decodes - n_before)
            n_before = draft.n_decodes
            assert decoder.target.tokens == decoder.history[:-1]
            held = decoder.drafter.cache.tokens
            assert held[: len(decoder.history)] == decoder.history[: len(held)]
            assert len(held) <= len(decoder.history) + 2
            assert event.n_drafted <= 4
    whole = n_new[1:-2]
    if noise:
        assert min(whole) < max(whole)
    else:  # two of four guesses are there already, and three are made ahead
        assert set(whole) == {2 + 3}


@pytest.mark.parametrize("at", range(3, 24))
def test_an_interruption_leaves_both_caches_usable(at: int) -> None:
    plain = generated(make_decoder(FakeModel(1, 9), "none", 0, GREEDY), PROMPT, 40)
    n_asked = 0

    def interrupted() -> bool:
        nonlocal n_asked
        n_asked += 1
        return n_asked == at or (n_asked > at and asked_for)

    asked_for = True
    draft = FakeModel(1, 9, noise=0.8)
    decoder = make_decoder(on_gpu(1), draft, Unhurried(4), GREEDY, interrupted=interrupted)
    events = list(decoder.generate(PROMPT, 40))
    assert events[-1] == End("interrupted")
    done = decoder.history[len(PROMPT) :]
    assert done == plain[: len(done)]
    asked_for = False
    assert generated(decoder, PROMPT, 40) == plain


def test_a_text_that_is_cut_forgets_what_was_guessed_ahead() -> None:
    decoder = make_decoder(on_gpu(1), FakeModel(1, 9), Unhurried(4), GREEDY)
    events = decoder.generate(PROMPT, 60)
    for event in itertools.islice(events, 8):
        last = event
    assert isinstance(last, Round)
    decoder.cut(len(decoder.history) - 2)
    plain = generated(make_decoder(FakeModel(1, 9), "none", 0, GREEDY), PROMPT, 40)
    assert generated(decoder, PROMPT, 40) == plain


def test_a_seed_gives_the_same_text_again_with_fixed_k() -> None:
    texts = set()
    for _ in range(3):
        decoder = make_decoder(on_gpu(1), FakeModel(1, 9, noise=0.8), 4, FakeSampler(1.0), 5)
        texts.add(tuple(generated(decoder, PROMPT, 60)))
    assert len(texts) == 1


def test_auto_goes_ahead_while_there_is_time() -> None:
    target = CostCurve({1: 4.0, 8: 7.0})
    planner = AutoPlanner(target, CostCurve({1: 1.0}), auto()._acceptance)
    assert planner.goes_ahead(0, 8, 0.2)
    assert planner.goes_ahead(1, 8, 2.6)  # a guess takes 2.4
    assert not planner.goes_ahead(2, 8, 5.0)
    assert planner.goes_ahead(0, 4, 0.2)
    assert not planner.goes_ahead(1, 4, 3.0)
    assert not planner.goes_ahead(0, 1, 2.0)  # there would be no time for any


@pytest.mark.parametrize("kind", ["ngram", "model"])
@pytest.mark.parametrize("n_asked", [1, 2, 5, 9])
@pytest.mark.parametrize("cuts", [False, True])
def test_a_caller_may_leave_or_cut_at_any_round(kind: str, n_asked: int, cuts: bool) -> None:
    plain = generated(make_decoder(FakeModel(1, 9), "none", 0, GREEDY), PROMPT, 80)
    draft = FakeModel(1, 9, noise=0.8) if kind == "model" else kind
    decoder = make_decoder(on_gpu(1), draft, 4, GREEDY)
    events = decoder.generate(PROMPT, 60)
    last = list(itertools.islice((e for e in events if isinstance(e, Round)), n_asked))[-1]
    assert decoder.target.tokens == decoder.history[:-1]
    if cuts:
        decoder.cut(len(decoder.history) - len(last.tokens) + 1)
        assert decoder.target.tokens == decoder.history[:-1]
    history = list(decoder.history)
    assert history == [*PROMPT, *plain][: len(history)]
    n_done = len(history) - len(PROMPT)
    assert generated(decoder, history, 9) == plain[n_done : n_done + 9]


def test_a_draft_that_fails_meanwhile_leaves_no_decode_behind() -> None:
    target, draft = on_gpu(1), FakeModel(1, 9)
    decoder = make_decoder(target, draft, 2, GREEDY)
    draft.on_decode = lambda n: DecodeError("full") if target.is_started else None
    with pytest.raises(DecodeError):
        generated(decoder, PROMPT, 40)
    assert not target.is_started
    draft.on_decode = lambda n: None
    plain = generated(make_decoder(FakeModel(1, 9), "none", 0, GREEDY), PROMPT, 40)
    assert generated(decoder, PROMPT, 40) == plain


@pytest.mark.parametrize("slowed", [False, True])
def test_a_decode_that_was_slowed_teaches_nothing(slowed: bool) -> None:
    cache = Cache(on_gpu(1))
    cache.costs = CostCurve({1: 1.0})
    cache.start([1], 1)
    cache.finish(slowed=slowed)
    assert (cache.costs.at(1) == 1.0) == slowed
    assert cache.seconds > 0.0
