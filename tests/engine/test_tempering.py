"""A draft's temperature moves to where it overlaps its target most, and bends nothing."""

import numpy as np
import pytest

from specli.engine.cache import Cache
from specli.engine.decode import Decoder
from specli.engine.drafters import ModelDrafter
from specli.engine.fixed import FixedPlanner
from specli.engine.sampler import LogitSampler, of_draft
from specli.engine.tempering import TEMPERATURES, Tempering
from specli.engine.types import Dist
from specli.settings import SamplingSettings
from tests.engine.test_exactness import PROMPT, p_value_of
from tests.fakes import FakeModel, FakeSampler, generated, softmax

N_VOCAB = 40
IDS = np.arange(N_VOCAB, dtype=np.int32)


def overlap(p: np.ndarray, logits: np.ndarray, temperature: float) -> float:
    return float(np.minimum(p, softmax(logits / temperature)).sum())


@pytest.mark.parametrize("target", [0.6, 0.8, 0.9, 1.0, 1.2])
def test_the_temperature_moves_to_where_the_overlap_is_largest(target: float) -> None:
    """The target is the draft itself at another temperature."""
    rng, tempering = np.random.default_rng(5), Tempering()
    sums = np.zeros(len(TEMPERATURES))
    for _ in range(3000):
        logits = rng.normal(0.0, 3.0, N_VOCAB)
        p = softmax(logits / target)
        q = Dist(IDS, softmax(logits / tempering.factor))
        token = q.draw(rng)
        tempering.observe(q, token, float(p[token]))
        sums += [overlap(p, logits, temperature) for temperature in TEMPERATURES]
    assert tempering.factor == TEMPERATURES[int(sums.argmax())]


def test_noise_moves_it_to_nowhere_far() -> None:
    """Where all temperatures are as good, it seldom leaves the one that it has."""
    rng, tempering, moves = np.random.default_rng(1), Tempering(), 0
    for _ in range(3000):
        q = Dist(IDS, np.full(N_VOCAB, 1 / N_VOCAB))  # flat at any temperature
        before = tempering.factor
        tempering.observe(q, q.draw(rng), float(rng.random()))
        moves += tempering.factor != before
    assert moves == 0


def decoder_of(target: FakeModel, draft: FakeModel, temperature: float, k: int) -> Decoder:
    settings = SamplingSettings(temperature, 0, 1.0, 0.0)
    own = LogitSampler(of_draft(settings), target.n_vocab)
    cache, rng = Cache(draft), np.random.default_rng(1)
    drafter = ModelDrafter(cache, own, target.n_vocab, rng, temperature=temperature)
    sampler = LogitSampler(settings, target.n_vocab)
    rng = np.random.default_rng(0)
    return Decoder(Cache(target), drafter, None, FixedPlanner(k), sampler, frozenset(), rng)


@pytest.mark.parametrize("noise", [0.0, 1.5])
def test_the_joint_distribution_stays_while_the_temperature_moves(
    noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specli.engine.tempering._DOUBT", -1.0)  # it moves all the time
    for temperature in (0.7, 1.0, 1.3):
        target = FakeModel(3, 4, spread=1.0)
        decoder = decoder_of(target, FakeModel(3, 4, spread=1.0, noise=noise), temperature, 3)
        assert p_value_of(decoder, FakeSampler(temperature)) > 1e-4


def test_a_draft_that_is_the_target_ends_at_its_temperature() -> None:
    decoder = decoder_of(FakeModel(1, 20), FakeModel(1, 20), 0.8, 4)
    assert isinstance(decoder.drafter, ModelDrafter)
    assert decoder.drafter._tempering.factor == 0.9
    generated(decoder, PROMPT, 3000)
    assert decoder.drafter._tempering.factor == 1.0


@pytest.mark.parametrize("factor", [0.0, 0.95, float("nan"), "1.0", None, [1.0]], ids=str)
def test_what_was_kept_is_taken_where_it_makes_sense(factor: object) -> None:
    assert Tempering(factor).factor == 0.9  # type: ignore[arg-type]
    assert [Tempering(one).factor for one in TEMPERATURES] == list(TEMPERATURES)


def test_greedy_guesses_have_no_temperature() -> None:
    draft = FakeModel(1, 20)
    own = LogitSampler(of_draft(SamplingSettings(temperature=0.0)), 20)
    rng = np.random.default_rng(1)
    drafter = ModelDrafter(Cache(draft), own, 20, rng, temperature=0.0, greedy=True)
    greedy = LogitSampler(SamplingSettings(temperature=0.0), 20)
    target = Cache(FakeModel(1, 20))
    rng = np.random.default_rng(0)
    decoder = Decoder(target, drafter, None, FixedPlanner(4), greedy, frozenset(), rng)
    assert len(generated(decoder, PROMPT, 200)) == 200
