"""The distribution that tokens are drawn from, against plain numpy and llama.cpp's own chain."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from specli.backend.library import llama
from specli.engine.sampler import LogitSampler, of_draft
from specli.engine.types import Dist, Row
from specli.errors import DecodeError
from specli.settings import SamplingSettings
from tests.fakes import FakeSampler

N_VOCAB = 1000
OFF = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}


def dist(row: Row, history: list[int], **settings: float) -> Dist:
    return LogitSampler(SamplingSettings(**OFF | settings), N_VOCAB).dist(row, history)  # type: ignore[arg-type]


def dense(some: Dist) -> NDArray[np.float64]:
    p = np.zeros(N_VOCAB)
    p[some.ids] = some.p
    return p


@pytest.fixture
def row() -> Row:
    return np.random.default_rng(0).normal(0, 3, N_VOCAB).astype(np.float32)


@contextmanager
def chain(settings: SamplingSettings, n_vocab: int) -> Iterator[Any]:
    """Make llama.cpp's chain of the filters."""
    lib = llama()
    made = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
    for part in (
        lib.llama_sampler_init_penalties(
            n_vocab, settings.repeat_last_n, settings.repeat_penalty, 0.0, 0.0
        ),
        lib.llama_sampler_init_top_k(settings.top_k),
        lib.llama_sampler_init_top_p(settings.top_p, 1),
        lib.llama_sampler_init_min_p(settings.min_p, 1),
    ):
        lib.llama_sampler_chain_add(made, part)
    yield made
    lib.llama_sampler_free(made)


def llama_cpp(row: Row, history: list[int], settings: SamplingSettings) -> dict[int, float]:
    """Return the tokens that llama.cpp lets through, with their logits."""
    candidates = np.zeros(len(row), [("id", np.int32), ("logit", np.float32), ("p", np.float32)])
    candidates["id"], candidates["logit"] = np.arange(len(row)), row
    array = llama().llama_token_data_array()
    array.data = ctypes.cast(candidates.ctypes.data, type(array.data))
    array.size, array.selected, array.sorted = len(row), -1, False
    with chain(settings, len(row)) as filters:
        for token in history[-settings.repeat_last_n :]:
            llama().llama_sampler_accept(filters, token)
        llama().llama_sampler_apply(filters, ctypes.byref(array))
    kept = candidates[: array.size]
    return dict(zip(kept["id"].tolist(), kept["logit"].tolist(), strict=True))


@pytest.mark.parametrize("spread", [0.01, 1.0, 3.0, 9.0])
@pytest.mark.parametrize("penalty", [1.0, 1.3])
@pytest.mark.parametrize("top_k", [0, 1, 40, 5000])
@pytest.mark.parametrize("top_p", [0.0, 0.5, 0.95, 0.999, 1.0])
@pytest.mark.parametrize("min_p", [0.0, 1e-8, 0.05, 1.0])
def test_lets_through_what_llama_cpp_does(
    spread: float, penalty: float, top_k: int, top_p: float, min_p: float
) -> None:
    row = np.random.default_rng(1).normal(3, spread, 3000).astype(np.float32)
    settings = SamplingSettings(1.0, top_k, top_p, min_p, penalty)
    history = np.argsort(-row)[:100:2].tolist()
    wanted = llama_cpp(row, history, settings)
    got = LogitSampler(settings, 3000).dist(row, history)
    weights = np.exp(np.array([wanted[token] for token in sorted(wanted)]) - max(wanted.values()))
    # Over many tokens llama.cpp's sum, in float32, reaches top-p some tokens sooner or later.
    odd = set(wanted) ^ set(got.ids.tolist())
    assert len(odd) <= (0.01 * len(wanted) if 0.0 < top_p < 1.0 else 0)
    if not odd:
        np.testing.assert_allclose(got.p, weights / weights.sum(), rtol=1e-5)


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


def test_rows_of_a_large_vocabulary_lose_nothing() -> None:
    row = np.random.default_rng(0).normal(0, 3, 150_000).astype(np.float32)
    got = LogitSampler(SamplingSettings(temperature=1.0, **OFF), len(row)).dist(row, [])  # type: ignore[arg-type]
    wanted = FakeSampler(1.0).dist(row, [])
    np.testing.assert_array_equal(got.ids, wanted.ids)
    np.testing.assert_allclose(got.p, wanted.p, rtol=3e-6)


def test_min_p_drops_what_is_far_below_the_likeliest(row: Row) -> None:
    full = dense(dist(row, [], temperature=1.0))
    kept = dense(dist(row, [], temperature=1.0, min_p=0.2))
    np.testing.assert_array_equal(kept > 0, full >= 0.2 * full.max())


def test_repeated_tokens_are_penalised_by_the_history_given(row: Row) -> None:
    row[7] = 20.0
    assert dist(row, [7], temperature=0, repeat_penalty=10.0).ids[0] != 7
    assert dist(row, [8], temperature=0, repeat_penalty=10.0).ids[0] == 7
    assert row[7] == 20.0  # it is llama.cpp's memory
    without = dense(dist(row, [], temperature=1.0))
    penalised = dense(dist(row, [3, 7, 3], temperature=1.0, repeat_penalty=2.0))
    assert penalised[7] < without[7]
    logits = row.astype(np.float64)
    for token in (3, 7):
        logits[token] = logits[token] / 2 if logits[token] > 0 else logits[token] * 2
    np.testing.assert_allclose(penalised, np.exp(logits) / np.exp(logits).sum(), atol=1e-6)


@pytest.mark.parametrize("repeat_last_n", [0, 1, 3])
def test_only_the_last_tokens_are_penalised(row: Row, repeat_last_n: int) -> None:
    settings = SamplingSettings(1.0, 0, 1.0, 0.0, 2.0, repeat_last_n)
    got = LogitSampler(settings, N_VOCAB).dist(row, [1, 2, 3, 4])
    changed = dense(got) / dense(dist(row, [], temperature=1.0))
    ordinary = np.median(changed)
    assert sorted(np.flatnonzero(abs(changed / ordinary - 1) > 1e-3)) == [
        *range(5 - repeat_last_n, 5)
    ]


def test_a_shorter_row_is_a_smaller_vocabulary(row: Row) -> None:
    for settings in (SamplingSettings(), SamplingSettings(1.0, **OFF)):  # type: ignore[arg-type]
        assert LogitSampler(settings, N_VOCAB).dist(row[:50], []).ids.max() < 50


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-50, 1e-6])
def test_a_tiny_temperature_is_the_arg_max(row: Row, temperature: float) -> None:
    got = dist(row, [], temperature=temperature)
    assert got.prob(int(row.argmax())) == 1.0


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("top_k", [0, 40])
def test_a_model_that_computes_no_numbers_is_an_error(
    row: Row, top_k: int, temperature: float, number: float
) -> None:
    row[3] = number
    with pytest.raises(DecodeError, match="instead of logits"):
        dist(row, [], temperature=temperature, top_k=top_k)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shift", [-1e4, -90.0, -30.0, 60.0, 90.0, 1e4])
@pytest.mark.parametrize("temperature", [0.2, 1.0, 1.7])
def test_only_differences_of_logits_matter(row: Row, temperature: float, shift: float) -> None:
    moved = row + np.float32(shift)
    wanted = FakeSampler(temperature).dist(moved, [])
    got = dist(moved, [], temperature=temperature)
    np.testing.assert_allclose(dense(got), dense(wanted), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 39, 40, 41, 80, 511, 512, 513, 5000, 40_961])
@pytest.mark.parametrize("top_k", [1, 3, 40])
def test_top_k_finds_the_largest_wherever_they_stand(n: int, top_k: int) -> None:
    rng = np.random.default_rng(n)
    for row in (rng.normal(0, 3, n), np.arange(n) / 100, np.arange(n)[::-1] / 100):
        settings = SamplingSettings(1.0, top_k, 1.0, 0.0)
        got = LogitSampler(settings, n).dist(row.astype(np.float32), [])
        assert got.ids.tolist() == sorted(np.argsort(-row)[:top_k].tolist())


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("top_p", [0.9, 1.0])
def test_a_draft_looks_at_likely_tokens_only(row: Row, temperature: float, top_p: float) -> None:
    settings = SamplingSettings(temperature, 0, top_p, 0.0)
    sampler = LogitSampler(of_draft(settings), N_VOCAB)
    for own in (temperature, 0.9 * temperature, temperature):
        sampler.warm(own)
        full = LogitSampler(replace(settings, temperature=own), N_VOCAB).dist(row, [])
        assert np.abs(dense(sampler.dist(row, [])) - dense(full)).sum() < 0.03


def test_a_draft_of_an_arg_max_knows_its_probability(row: Row) -> None:
    got = LogitSampler(of_draft(SamplingSettings(temperature=0.0)), N_VOCAB).dist(row, [])
    assert got.p.max() == pytest.approx(FakeSampler(1.0).dist(row, []).p.max(), rel=0.02)


def test_a_draw_follows_the_weights() -> None:
    """In a vocabulary of several blocks, one of which is empty."""
    weights = np.random.default_rng(0).random(1000).astype(np.float32)
    weights[256:512] = weights[::3] = 0.0
    some = Dist(np.arange(0, 2000, 2, dtype=np.int32), weights)
    rng = np.random.default_rng(1)
    counts = np.bincount([some.draw(rng) // 2 for _ in range(40_000)], minlength=1000)
    assert not counts[weights == 0].any()
    expected = 40_000 * weights / weights.sum()
    kept = weights > 0
    error = (counts[kept] - expected[kept]) / np.sqrt(expected[kept])
    assert 0.9 < (error**2).mean() < 1.1  # chi-square per degree of freedom
