"""One KV sequence of llama.cpp: rows, rewinding, limits, interruption."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.library import llama
from specli.backend.model import LlamaModel
from specli.engine.cache import Cache
from specli.errors import CannotRewind, DecodeError, Interrupted

TEXT = list(range(100, 220))


@contextmanager
def context(
    path: Path, n_ctx: int = 512, n_rows: int = 8, stop: bool = False
) -> Iterator[LlamaContext]:
    with (
        LlamaModel(path) as model,
        LlamaContext(model, ContextSettings(n_ctx, n_rows, 1), lambda: stop) as opened,
    ):
        yield opened


def test_rows_are_the_logits_of_the_last_tokens(tiny: Path) -> None:
    with context(tiny / "target.gguf") as one, context(tiny / "target.gguf") as many:
        single = np.array([one.decode([token], 1)[0].copy() for token in TEXT[:8]])
        rows = many.decode(TEXT[:8], 3)
        assert rows.shape == (3, 320)
        np.testing.assert_allclose(rows, single[5:], atol=0.01)
        assert many.length == 8


def test_on_a_gpu_few_tokens_are_decoded_one_by_one(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decode of another shape than the last one is dear there."""
    with context(tiny / "target.gguf") as singly, context(tiny / "target.gguf") as at_once:
        monkeypatch.setattr(singly, "_on_gpu", True)
        start, sizes = singly.start, list[int]()

        def noted(tokens: Sequence[int], n_rows: int) -> None:
            sizes.append(len(tokens))
            start(tokens, n_rows)

        monkeypatch.setattr(singly, "start", noted)
        for n, wanted in ((1, [1]), (2, [1] * 2), (6, [1] * 6), (7, [7])):
            sizes.clear()
            rows = singly.decode(TEXT[:n], 1)
            assert sizes == wanted
            np.testing.assert_allclose(rows, at_once.decode(TEXT[:n], 1), atol=0.01)
            assert singly.length == at_once.length
        assert singly.decode(TEXT[:2], 2).shape == (2, 320)


@pytest.mark.parametrize("name", ["target", "swa"])
def test_on_a_gpu_the_number_of_tokens_matters_unless_a_window_forbids_padding(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with context(tiny / f"{name}.gguf") as on_cpu:
        assert not on_cpu.prepares
    monkeypatch.setattr(llama(), "llama_supports_gpu_offload", lambda: True)
    with context(tiny / f"{name}.gguf") as on_gpu:
        assert on_gpu.prepares == (name == "target")


def test_more_are_decoded_than_are_judged_and_dropped_again(tiny: Path) -> None:
    with (
        context(tiny / "target.gguf", n_ctx=256) as padded,
        context(tiny / "target.gguf", n_ctx=256) as plain,
    ):
        cache = Cache(padded)
        for n in (2, 3, 4, 5, 8):
            cache.start(TEXT[:n], 6)
            rows = cache.finish()
            np.testing.assert_allclose(rows, plain.decode(TEXT[:n], n), atol=0.01)
            assert len(cache.tokens) == padded.length == plain.length
        rest = (TEXT * 3)[: 253 - plain.length]
        cache.fill(rest, 0)
        plain.decode(rest, 0)
        cache.start(TEXT[:3], 8)  # to the very end of the context
        rows = cache.finish()
        np.testing.assert_allclose(rows, plain.decode(TEXT[:3], 3), atol=0.01)
        assert padded.length == 256


def test_one_by_one_too_the_context_ends_where_it_ends(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with context(tiny / "target.gguf", n_ctx=256) as opened:
        monkeypatch.setattr(opened, "_on_gpu", True)
        opened.decode((TEXT * 3)[:254], 0)
        with pytest.raises(DecodeError, match="the context is full"):
            opened.decode(TEXT[:3], 1)
        assert opened.length <= 256
        opened.truncate(254)
        opened.decode(TEXT[:2], 1)


@pytest.mark.parametrize("name", ["target", "swa"])
def test_what_comes_after_a_rewind_is_as_if_nothing_had_been(tiny: Path, name: str) -> None:
    with context(tiny / f"{name}.gguf") as rewound, context(tiny / f"{name}.gguf") as fresh:
        rewound.decode(TEXT[:40], 1)
        rewound.decode([7, 8, 9, 10], 4)
        rewound.truncate(41)
        fresh.decode(TEXT[:40], 1)
        fresh.decode([7], 1)
        assert rewound.length == fresh.length == 41
        np.testing.assert_allclose(rewound.decode([50], 1), fresh.decode([50], 1), atol=0.01)


@pytest.mark.parametrize("name", ["recurrent", "hybrid"])
def test_a_memory_that_cannot_drop_its_end_is_found_out(tiny: Path, name: str) -> None:
    with context(tiny / f"{name}.gguf") as opened:
        assert not opened.can_rewind()
        assert opened.length == 0
        opened.decode(TEXT[:4], 1)
        with pytest.raises(CannotRewind):
            opened.truncate(2)
        assert opened.length == 4


@pytest.mark.parametrize("name", ["target", "swa"])
def test_a_memory_that_can_is_found_too(tiny: Path, name: str) -> None:
    with context(tiny / f"{name}.gguf") as opened:
        assert opened.can_rewind()
        assert opened.length == 0


def test_a_sliding_window_does_not_go_back_to_what_it_has_forgotten(tiny: Path) -> None:
    """llama.cpp drops the tail without a word and then computes nonsense."""
    text = [100 + i % 200 for i in range(1500)]
    with context(tiny / "swa.gguf", 2048) as opened, context(tiny / "swa.gguf", 2048) as fresh:
        cache, other = Cache(opened), Cache(fresh)
        for _ in cache.sync(text):
            pass
        opened.truncate(1495)  # near the end all is there
        with pytest.raises(CannotRewind):
            opened.truncate(100)
        for cached in (cache, other):  # and sync starts anew by itself
            for _ in cached.sync(text[:100]):
                pass
        np.testing.assert_allclose(cache.fill([50], 1), other.fill([50], 1), atol=0.05)


def test_a_full_context_is_an_error_that_changes_nothing(tiny: Path) -> None:
    with context(tiny / "target.gguf", n_ctx=20) as opened:
        opened.decode(TEXT[:18], 1)
        with pytest.raises(DecodeError, match="context is full: 18 \\+ 3 tokens of 20"):
            opened.decode([1, 2, 3], 1)
        assert opened.length == 18
        opened.decode([1, 2], 1)


def test_a_long_prompt_can_be_broken_off(tiny: Path) -> None:
    with context(tiny / "target.gguf", stop=True) as opened:
        with pytest.raises(Interrupted):
            opened.decode(TEXT, 0)
        assert opened.length == 0
        opened.decode(TEXT[:4], 4)  # where tokens are generated the loop asks, not the decode
        assert opened.length == 4


def test_loading_can_be_broken_off(tiny: Path) -> None:
    with pytest.raises(Interrupted):
        LlamaModel(tiny / "target.gguf", on_load=lambda share: False)


@pytest.mark.parametrize("name", ["target", "swa", "recurrent", "hybrid"])
@pytest.mark.parametrize("asked", [5, 40, 66, 80, 120])
def test_a_broken_off_prompt_leaves_no_half_computed_tokens(
    tiny: Path, name: str, asked: int
) -> None:
    """A recurrent memory counts the tokens of an aborted batch as its own."""
    text, left = [100 + i % 200 for i in range(400)], [10**9]

    def ctrl_c() -> bool:
        left[0] -= 1
        return left[0] <= 0

    settings = ContextSettings(512, 1, 1)
    with (
        LlamaModel(tiny / f"{name}.gguf") as model,
        LlamaContext(model, settings, ctrl_c) as opened,
    ):
        cache = Cache(opened)
        list(cache.sync(text))
        wanted = cache.fill([7], 1).copy()
        opened.truncate(0)
        left[0] = asked
        with suppress(Interrupted):
            list(cache.sync(text))
        left[0] = 10**9
        list(cache.sync(text))
        np.testing.assert_allclose(cache.fill([7], 1), wanted, atol=0.01)


def test_a_decode_can_be_started_and_others_done_before_its_rows_are_read(tiny: Path) -> None:
    with (
        context(tiny / "target.gguf") as started,
        context(tiny / "target.gguf") as other,
        context(tiny / "target.gguf") as plain,
    ):
        started.start(TEXT[:5], 3)
        assert started.length == 5
        other.decode(TEXT[5:9], 1)
        np.testing.assert_allclose(started.finish(), plain.decode(TEXT[:5], 3), atol=0.01)
        assert not started.goes_on


def test_only_where_all_is_on_a_gpu_a_decode_goes_on_by_itself(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama(), "llama_supports_gpu_offload", lambda: True)
    for n_gpu_layers, goes_on in ((-1, True), (99, True), (0, False), (1, False)):
        with LlamaModel(tiny / "target.gguf", n_gpu_layers) as model:
            settings = ContextSettings(n_ctx=64, n_rows=4, n_threads=1)
            with LlamaContext(model, settings) as opened:
                assert opened.goes_on == goes_on
