"""llama.cpp's samplers as distributions, against plain numpy."""

from contextlib import closing

import numpy as np
import pytest
from numpy.typing import NDArray

from specli.backend.sampler import LlamaSampler
from specli.engine.types import Dist, Row
from specli.errors import DecodeError
from specli.settings import SamplingSettings
from tests.fakes import FakeSampler

N_VOCAB = 1000
OFF = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}


def dist(row: Row, history: list[int], **settings: float) -> Dist:
    with closing(LlamaSampler(SamplingSettings(**OFF | settings), N_VOCAB)) as sampler:  # type: ignore[arg-type]
        return sampler.dist(row, history)


def dense(some: Dist) -> NDArray[np.float64]:
    p = np.zeros(N_VOCAB)
    p[some.ids] = some.p
    return p


@pytest.fixture
def row() -> Row:
    return np.random.default_rng(0).normal(0, 3, N_VOCAB).astype(np.float32)


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0, 1.7])
@pytest.mark.parametrize(
    "filters", [{}, {"top_k": 20}, {"top_p": 0.8}, {"top_k": 50, "top_p": 0.9}]
)
def test_equals_the_reference(row: Row, temperature: float, filters: dict[str, float]) -> None:
    got = dist(row, [], temperature=temperature, **filters)
    wanted = FakeSampler(temperature, **filters).dist(row, [])  # type: ignore[arg-type]
    assert got.p.sum() == pytest.approx(1.0)
    assert (np.diff(got.ids) > 0).all()
    np.testing.assert_allclose(dense(got), dense(wanted), atol=1e-6)


def test_min_p_drops_what_is_far_below_the_likeliest(row: Row) -> None:
    full = dense(dist(row, [], temperature=1.0))
    kept = dense(dist(row, [], temperature=1.0, min_p=0.2))
    np.testing.assert_array_equal(kept > 0, full >= 0.2 * full.max())


def test_repeated_tokens_are_penalised_by_the_history_given(row: Row) -> None:
    row[7] = 20.0
    assert dist(row, [7], temperature=0, repeat_penalty=10.0).ids[0] != 7
    assert dist(row, [8], temperature=0, repeat_penalty=10.0).ids[0] == 7
    without = dense(dist(row, [], temperature=1.0))
    penalised = dense(dist(row, [3, 7, 3], temperature=1.0, repeat_penalty=2.0))
    assert penalised[7] < without[7]
    logits = row.astype(np.float64)
    for token in (3, 7):
        logits[token] = logits[token] / 2 if logits[token] > 0 else logits[token] * 2
    np.testing.assert_allclose(penalised, np.exp(logits) / np.exp(logits).sum(), atol=1e-6)


def test_a_history_leaves_no_trace_in_the_next_call(row: Row) -> None:
    settings = SamplingSettings(temperature=1.0, repeat_penalty=1.5, **OFF)  # type: ignore[arg-type]
    with closing(LlamaSampler(settings, N_VOCAB)) as sampler:
        before = dense(sampler.dist(row, [1, 2]))
        sampler.dist(row, list(range(100)))
        np.testing.assert_array_equal(dense(sampler.dist(row, [1, 2])), before)


def test_a_shorter_row_is_a_smaller_vocabulary(row: Row) -> None:
    settings = SamplingSettings(temperature=1.0)
    with closing(LlamaSampler(settings, N_VOCAB)) as sampler:
        assert sampler.dist(row[:50], []).ids.max() < 50


@pytest.mark.parametrize("temperature", [1e-300, 1e-50, 1e-6])
def test_a_tiny_temperature_is_the_arg_max(row: Row, temperature: float) -> None:
    got = dist(row, [], temperature=temperature)
    assert got.prob(int(row.argmax())) == 1.0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_model_that_computes_no_numbers_is_an_error(row: Row, temperature: float) -> None:
    row[3] = np.nan
    with pytest.raises(DecodeError, match="instead of logits"):
        dist(row, [], temperature=temperature)
