"""Conversations to prompts, rounds to text; the whole path on tiny models."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from specli.assemble import Pair, Session, open_session
from specli.chat import Done, Message, Text
from specli.errors import ModelError, PairError, UsageError
from specli.models.store import Located
from specli.settings import SamplingSettings, Settings
from tests.margins import TIED, divergence

GREEDY = SamplingSettings(temperature=0.0)
OFF = SamplingSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)


def located(path: Path) -> Located:
    return Located(path.stem, path)


@contextmanager
def session(folder: Path, target: str, draft: str, **settings: object) -> Iterator[Session]:
    wanted: dict[str, object] = {"sampling": GREEDY, "n_threads": 1, "seed": 1} | settings
    guess = draft if draft in ("ngram", "none") else located(folder / f"{draft}.gguf")
    pair = Pair(located(folder / f"{target}.gguf"), guess)
    with open_session(pair, Settings(**wanted)) as opened:  # type: ignore[arg-type]
        yield opened


def answer(opened: Session, prompt: str, n: int) -> tuple[str, Done]:
    *events, done = opened.answerer.complete(prompt, n)
    assert isinstance(done, Done)
    return "".join(event.text for event in events if isinstance(event, Text)), done


# --- answers


@pytest.mark.parametrize("target", ["target", "swa"])
def test_target_as_its_own_draft_is_always_right(tiny: Path, target: str) -> None:
    """Over 500 tokens: a cache that is one token off shows here (rows differ in the last bits)."""
    with session(tiny, target, target, k=4, n_ctx=1024) as opened:
        _, done = answer(opened, "Once upon a time", 500)
    stats = done.stats
    assert stats.predicted_n == 500
    assert stats.mean_tokens_per_round >= 4.9
    if stats.draft_n_accepted == stats.draft_n:
        assert stats.draft_rounds == 100


def test_statistics_add_up(tiny: Path) -> None:
    with session(tiny, "target", "draft", k=3) as opened:
        _, done = answer(opened, "Once upon a time", 100)
    stats = done.stats
    assert done.reason == "length"
    assert stats.predicted_n == 100 == stats.draft_rounds + stats.draft_n_accepted
    assert 0 < stats.draft_n_accepted < stats.draft_n
    shown = stats.as_dict()
    assert shown["method"] == "draft"
    assert len(shown["accepted_per_position"]) == 3  # type: ignore[arg-type]
    assert stats.host_s + stats.draft_s + stats.target_s == pytest.approx(stats.predicted_s)


def split(opened: Session, done: Done) -> tuple[list[int], list[int]]:
    """Return prompt and answer, as tokens, of the last answer."""
    history = opened.answerer.decoder.history
    at = done.stats.cache_n + done.stats.prompt_n
    return history[:at], history[at:]


def test_a_second_turn_evaluates_its_new_tokens_and_equals_a_fresh_run(smollm2: Path) -> None:
    pair = Pair(located(smollm2), "ngram")
    settings = Settings(sampling=GREEDY, n_ctx=1024)
    turns = [Message("user", "Name three colours.")]
    with open_session(pair, settings) as opened:
        *events, first = opened.answerer.reply(turns, 24)
        text = "".join(event.text for event in events if isinstance(event, Text))
        turns += [Message("assistant", text), Message("user", "And three fruits?")]
        *_, second = opened.answerer.reply(turns, 24)
        assert isinstance(second, Done)
        prompt, again = split(opened, second)
    with open_session(pair, settings) as fresh:
        *_, third = fresh.answerer.reply(turns, 24)
        assert isinstance(third, Done)
        prompt_of_fresh, wanted = split(fresh, third)
    assert prompt == prompt_of_fresh
    parted = divergence(smollm2, prompt, wanted, again)
    assert parted is None or parted.margin < TIED, parted
    assert isinstance(first, Done)
    held = first.stats.prompt_n + first.stats.predicted_n - 1
    assert second.stats.cache_n >= held - 1  # all but, at most, the end of the first answer
    assert second.stats.prompt_n + second.stats.cache_n == third.stats.prompt_n
    assert second.stats.prompt_n < 20


@pytest.mark.parametrize("k", [0, 1, 3, 7])
def test_a_stop_string_inside_a_round_cuts_text_tokens_and_caches(tiny: Path, k: int) -> None:
    with session(tiny, "target", "target", k=k) as opened:
        text, whole = answer(opened, "Once upon a time", 60)
    stop = text[20:23]
    assert stop
    with session(tiny, "target", "target", k=k, stops=(stop,)) as opened:
        cut, done = answer(opened, "Once upon a time", 60)
        decoder = opened.answerer.decoder
        assert len(decoder.target.tokens) == len(decoder.history) - 1
    assert done.reason == "stop"
    assert cut == text[: text.index(stop)]
    stats = done.stats
    assert stats.predicted_n < whole.stats.predicted_n
    assert 0 <= stats.draft_rounds + stats.draft_n_accepted - stats.predicted_n <= 1


def test_the_context_fills_up_and_the_text_is_kept(tiny: Path) -> None:
    for k in (0, 3):
        with session(tiny, "target", "draft", k=k, n_ctx=64) as opened:
            text, done = answer(opened, "Once upon a time", 10_000)
        assert done.reason == "context"
        assert len(text) > 10
        assert done.stats.prompt_n + done.stats.predicted_n == 65


def test_a_prompt_that_does_not_fit_is_refused(tiny: Path) -> None:
    with session(tiny, "target", "none", n_ctx=32) as opened:
        with pytest.raises(UsageError, match="the context holds 32") as raised:
            answer(opened, "far too long " * 50, 5)
        assert "--ctx" in raised.value.hint
        with pytest.raises(UsageError, match="the context holds 32") as raised:
            answer(opened, "far too long " * 5000, 5)
        n_ctx_train = opened.answerer.decoder.target.model.n_ctx_train
        assert raised.value.hint == (
            f"give a shorter prompt: this model was trained for {n_ctx_train} tokens"
        )
        assert answer(opened, "short", 5)[1].reason == "length"  # and nothing is lost


@pytest.mark.parametrize("name", ["recurrent", "hybrid"])
@pytest.mark.parametrize("draft", ["ngram", "draft"])
def test_a_memory_that_cannot_rewind_decodes_plainly_and_says_why(
    tiny: Path, name: str, draft: str
) -> None:
    with session(tiny, name, draft) as opened:
        assert opened.method == "none"
        assert "cannot drop rejected tokens" in opened.reason_off
        first, done = answer(opened, "Once upon a time", 40)
        assert done.stats.as_dict()["reason_off"] == opened.reason_off
        assert answer(opened, "Once upon a time", 40)[0] == first  # the second turn starts anew
    with session(tiny, name, "none") as opened:
        assert opened.reason_off == ""
        assert answer(opened, "Once upon a time", 40)[0] == first


def test_a_draft_that_cannot_rewind_is_not_used(tiny: Path) -> None:
    with session(tiny, "target", "recurrent") as opened:
        assert opened.method == "none"
        assert "recurrent" in opened.reason_off


@pytest.mark.parametrize("draft", ["larger", "renamed", "no_bos"])
def test_a_mismatched_pair_is_refused_before_the_first_token(tiny: Path, draft: str) -> None:
    with pytest.raises(PairError), session(tiny, "target", draft):
        pass


@pytest.mark.parametrize(("target", "draft"), [("target", "padded"), ("padded", "target")])
def test_padded_vocabularies_go_together(tiny: Path, target: str, draft: str) -> None:
    with session(tiny, target, draft, sampling=OFF, k=3) as opened:
        assert answer(opened, "Once upon a time", 100)[1].stats.draft_n_accepted > 0


def test_a_model_without_a_template_says_so(tiny: Path, tmp_path: Path) -> None:
    with session(tiny, "no_template", "none") as opened:
        with pytest.raises(ModelError, match="no chat template") as raised:
            opened.answerer.reply([Message("user", "hi")], 5)
        assert "--chat-template" in raised.value.hint
    path = tmp_path / "template.jinja"
    path.write_text("{{ messages[0].content }}")
    with session(tiny, "no_template", "none", chat_template=path) as opened:
        assert list(opened.answerer.reply([Message("user", "hi")], 5))
    with (
        pytest.raises(ModelError, match="cannot be read"),
        session(tiny, "no_template", "none", chat_template=tmp_path / "missing"),
    ):
        pass


def test_the_same_seed_gives_the_same_answer(tiny: Path) -> None:
    texts = []
    for seed in (1, 1, 2):
        with session(tiny, "target", "draft", sampling=OFF, seed=seed, k=3) as opened:
            texts.append(answer(opened, "Once upon a time", 40)[0])
    assert texts[0] == texts[1] != texts[2]


def test_a_draft_whose_context_is_too_small_is_silent_and_says_why(tiny: Path) -> None:
    with session(tiny, "target", "draft", draft_n_ctx=8, k=3) as opened:
        _, done = answer(opened, "Once upon a time there was", 10)
    assert done.stats.draft_n == 0
    assert done.stats.reason_off == "the draft's context of 8 tokens is full"
    with session(tiny, "target", "draft", draft_n_ctx=8) as opened:
        _, done = answer(opened, "Once upon a time there was", 10)
    assert done.stats.draft_muted == "the draft's context of 8 tokens is full"
    assert done.stats.reason_off == ""  # n-grams go on


def test_a_silent_draft_with_a_sliding_window_does_not_fail_the_turn(tiny: Path) -> None:
    with session(tiny, "swa", "swa_draft", n_ctx=2000, draft_n_ctx=700) as opened:
        for prompt in ("hello world " * 40, "the cat and the dog " * 80, "short"):
            assert answer(opened, prompt, 300)[1].reason == "length"
