"""On real kernels: greedy speculative decoding gives what plain decoding gives."""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from specli.assemble import Pair, open_session
from specli.chat import Done
from specli.engine.stats import Stats
from specli.models.store import Located
from specli.settings import SamplingSettings, Settings
from tests.margins import TIED, divergence

GREEDY = SamplingSettings(temperature=0.0)


@cache
def greedy(
    target: Path, draft: Path | str, k: int | None, prompts: tuple[str, ...], n: int
) -> list[tuple[list[int], list[int]]]:
    """Return prompt and continuation, as tokens, of each prompt."""
    guess = Located(draft.stem, draft) if isinstance(draft, Path) else draft
    n_threads = 2 if target.stat().st_size > 50_000_000 else 1  # a tiny one has nothing to share
    settings = Settings(k=k, sampling=GREEDY, n_ctx=1024, n_threads=n_threads)
    results = []
    with open_session(Pair(Located(target.stem, target), guess), settings) as session:
        decoder = session.answerer.decoder
        for prompt in prompts:
            tokens = session.answerer.tokenizer.tokenize(prompt)
            for _ in decoder.generate(tokens, n):
                pass
            results.append((tokens, decoder.history[len(tokens) :]))
    return results


def assert_equal_or_tied(
    target: Path, draft: Path | str, ks: Sequence[int | None], prompts: tuple[str, ...], n: int
) -> None:
    plain = greedy(target, "none", 0, prompts, n)
    n_equal = 0
    for k in ks:
        for (tokens, wanted), (_, got) in zip(
            plain, greedy(target, draft, k, prompts, n), strict=True
        ):
            parted = divergence(target, tokens, wanted, got)
            n_equal += parted is None
            assert parted is None or parted.margin < TIED, (k, parted)
    assert n_equal > 0  # ties are rare: were they the rule, this test would show nothing


TINY_PROMPTS = ("Once upon a time", "a b c a b c a b", "Hello, wörld 🙂", "x" * 90)


@pytest.mark.parametrize(
    ("target", "draft"),
    [
        ("target", "ngram"),
        ("target", "draft"),
        ("target", "hopeless"),
        ("target", "target"),
        ("swa", "ngram"),
        ("swa", "swa_draft"),
    ],
)
def test_tiny_models(tiny: Path, target: str, draft: str) -> None:
    guess = draft if draft == "ngram" else tiny / f"{draft}.gguf"
    assert_equal_or_tied(tiny / f"{target}.gguf", guess, [1, 2, 4, 8, 16, None], TINY_PROMPTS, 60)


def test_a_sliding_window_much_shorter_than_the_text(tiny: Path) -> None:
    """Long enough that the cache of the window has been written over several times."""
    assert_equal_or_tied(tiny / "swa.gguf", tiny / "swa_draft.gguf", [3], TINY_PROMPTS[:2], 900)


PROMPTS = (
    "<|im_start|>user\nRepeat: one two three four one two three four<|im_end|>\n"
    "<|im_start|>assistant\n",
    "def fibonacci(n):\n",
)


@pytest.mark.real
@pytest.mark.parametrize("draft", ["ngram", "itself"])
def test_smollm2(smollm2: Path, draft: str) -> None:
    guess = smollm2 if draft == "itself" else draft
    assert_equal_or_tied(smollm2, guess, [4, None], PROMPTS, 48)


@pytest.mark.real
def test_smollm2_as_its_own_draft_is_always_right(smollm2: Path) -> None:
    """Over 160 tokens: were a cache one token off, acceptance would decay."""
    stats = drafted_by_itself(smollm2, requantize_draft=False)
    assert stats.predicted_n == 160
    assert stats.draft_n_accepted >= 0.99 * stats.draft_n


@pytest.mark.real
def test_smollm2_in_four_bits_is_another_draft(smollm2: Path) -> None:
    """Where the system knows no files in memory, it stays the same."""
    stats = drafted_by_itself(smollm2, requantize_draft=True)
    assert stats.predicted_n == 160
    assert stats.draft_n_accepted > 0.2 * stats.draft_n
    is_same = stats.draft_n_accepted >= 0.9 * stats.draft_n
    assert is_same == (not hasattr(os, "memfd_create"))


def drafted_by_itself(model: Path, *, requantize_draft: bool) -> Stats:
    settings = Settings(k=4, sampling=GREEDY, n_ctx=1024, requantize_draft=requantize_draft)
    pair = Pair(Located("a", model), Located("b", model))
    with open_session(pair, settings) as session:
        *_, done = session.answerer.complete("Once upon a time", 160)
    assert isinstance(done, Done)
    return done.stats
