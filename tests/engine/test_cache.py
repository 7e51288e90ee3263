"""Whatever interrupts, the caches are prefixes of the history and the next answer is right."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specli.engine.cache import Cache, common_prefix
from specli.engine.costs import CostCurve
from specli.engine.decode import Decoder
from specli.engine.types import End, Prefill, Round
from specli.errors import CannotRewind, DecodeError, Interrupted
from tests.fakes import Clock, FakeModel, FakeSampler, generated, make_decoder

GREEDY = FakeSampler(temperature=0.0)
TOKENS = st.lists(st.integers(0, 4), min_size=1, max_size=30)


@given(TOKENS, TOKENS)
def test_common_prefix(a: list[int], b: list[int]) -> None:
    n = common_prefix(a, b)
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]


@given(st.lists(TOKENS, min_size=1, max_size=6), st.booleans())
def test_sync_leaves_just_the_tokens(texts: list[list[int]], can_truncate: bool) -> None:
    model = FakeModel(0, can_truncate=can_truncate)
    cache = Cache(model)
    for text in texts:
        steps = list(cache.sync(text))
        assert model.tokens == cache.tokens == text
        assert steps == sorted(steps)
        assert steps[-1] == len(text)


def test_rewind_of_a_memory_that_cannot_changes_nothing() -> None:
    cache = Cache(FakeModel(0, can_truncate=False))
    cache.fill([1, 2, 3], 1)
    with pytest.raises(CannotRewind):
        cache.rewind(2)
    assert cache.tokens == [1, 2, 3]


def test_tokens_are_adopted_where_the_model_holds_as_many() -> None:
    model = FakeModel(0)
    cache = Cache(model)
    model.tokens = [1, 2, 3]  # as after a state was restored
    assert cache.adopt([1, 2, 3])
    assert next(cache.sync([1, 2, 3, 4])) == 3
    model.tokens = [1, 2, 3]
    assert not cache.adopt([1, 2])
    assert cache.tokens == model.tokens == []


def check_invariant(decoder: Decoder, model: FakeModel, draft: FakeModel) -> None:
    """Each cache holds a prefix of the history, and one token of it is pending."""
    history = decoder.history
    assert decoder.target.tokens == model.tokens == history[:-1]
    assert draft.tokens == history[: len(draft.tokens)]
    assert len(draft.tokens) < len(history)


def fail_at(n: int, error: BaseException) -> Callable[[int], BaseException | None]:
    """Return an on_decode for a fake model whose n-th decode from now on fails."""
    calls = iter(range(100_000))
    return lambda _: error if next(calls) == n else None


class Turn:
    """One generation of the test: how its prompt grows from the history, and what breaks it."""

    def __init__(self, kept: int, new: list[int], n_max: int, fail_at: int, partial: int) -> None:
        self.kept, self.new, self.n_max = kept, new, n_max
        self.fail_at, self.partial = fail_at, partial

    def __repr__(self) -> str:
        return str(vars(self))


TURNS = st.lists(
    st.builds(
        Turn,
        kept=st.integers(0, 40),
        new=TOKENS,
        n_max=st.integers(1, 12),
        fail_at=st.integers(0, 12),
        partial=st.integers(0, 4),
    ),
    min_size=1,
    max_size=5,
)
ERRORS = st.sampled_from([Interrupted("x"), DecodeError("x"), KeyboardInterrupt()])


@settings(max_examples=300, deadline=None)
@given(TURNS, ERRORS, st.booleans(), st.integers(1, 6))
def test_invariant_with_a_failure_at_every_decode(
    turns: list[Turn], error: BaseException, in_draft: bool, k: int
) -> None:
    target, draft = FakeModel(5), FakeModel(5, noise=1.0)
    decoder = make_decoder(target, draft, k, GREEDY)
    broken = draft if in_draft else target
    for turn in turns:
        prompt = decoder.history[: turn.kept] + turn.new
        broken.on_decode = fail_at(turn.fail_at, error)
        broken.n_partial = turn.partial
        with suppress(DecodeError, KeyboardInterrupt):
            for event in decoder.generate(prompt, turn.n_max):
                if isinstance(event, Round):
                    check_invariant(decoder, target, draft)
        assert decoder.target.tokens == target.tokens
        broken.on_decode = lambda n: None
        plain = generated(make_decoder(FakeModel(5), "none", 0, GREEDY), prompt, turn.n_max)
        assert generated(decoder, prompt, turn.n_max) == plain


@settings(max_examples=200, deadline=None)
@given(TOKENS, st.integers(0, 60), st.integers(0, 5))
def test_ctrl_c_between_any_two_decodes(prompt: list[int], stop_at: int, k: int) -> None:
    asked = iter(range(100_000))
    target, draft = FakeModel(5), FakeModel(5, noise=1.0)
    decoder = make_decoder(target, draft, k, GREEDY, interrupted=lambda: next(asked) >= stop_at)
    plain = generated(make_decoder(FakeModel(5), "none", 0, GREEDY), prompt, 10)
    events = list(decoder.generate(prompt, 10))
    assert isinstance(events[-1], End)
    assert events[-1].reason in ("interrupted", "length")
    added = decoder.history[len(prompt) :]
    assert added == plain[: len(added)]
    assert target.tokens == decoder.target.tokens
    asked = iter([-(10**9)] * 100_000)
    assert generated(decoder, prompt, 10) == plain


def test_an_abandoned_generation_leaves_consistent_caches() -> None:
    decoder = make_decoder(FakeModel(5), FakeModel(5, noise=1.0), 3, GREEDY)
    plain = generated(make_decoder(FakeModel(5), "none", 0, GREEDY), [1, 2], 20)
    for n in range(1, 8):
        events = decoder.generate([1, 2], 20)
        for _ in range(n):
            next(events)
        del events
        assert generated(decoder, [1, 2], 20) == plain


def test_the_second_turn_evaluates_only_what_is_new() -> None:
    model = FakeModel(2)
    decoder = make_decoder(model, FakeModel(2, noise=1.0), 3, GREEDY)
    answer = generated(decoder, [1, 2, 3], 10)
    prompt = [1, 2, 3, *answer, 4, 4, 4]
    first, *_ = (e for e in decoder.generate(prompt, 5) if isinstance(e, Prefill))
    assert first.n_cached == 3 + 10 - 1  # the last token of the answer was pending
    assert first.n_total == 1 + 3


def test_cut_forgets_the_end() -> None:
    decoder = make_decoder(FakeModel(2), FakeModel(2), 4, GREEDY)
    for event in decoder.generate([1, 2], 20):
        if isinstance(event, Round):
            decoder.cut(4)
            break
    assert len(decoder.history) == 4
    assert decoder.target.tokens == decoder.history[:3]


def test_context_full_ends_the_generation() -> None:
    for k in (0, 1, 3, 8):
        target = FakeModel(2, n_ctx=20)
        decoder = make_decoder(target, FakeModel(2, n_ctx=20), k, GREEDY)
        *_, last = decoder.generate([1, 2, 3], None)
        assert last == End("context")
        assert len(decoder.history) == 21  # the last token needs no room


def test_a_draft_with_a_smaller_context_falls_silent() -> None:
    decoder = make_decoder(FakeModel(2), FakeModel(2, noise=0.5, n_ctx=12), 3, GREEDY)
    plain = generated(make_decoder(FakeModel(2), "none", 0, GREEDY), [1, 2], 40)
    rounds = [e for e in decoder.generate([1, 2], 40) if isinstance(e, Round)]
    assert decoder.history[2:] == plain
    assert rounds[0].n_drafted == 3
    assert rounds[-1].n_drafted == 0


def test_a_draft_that_does_not_know_a_token_falls_silent() -> None:
    target, draft = FakeModel(2, n_vocab=6), FakeModel(2, n_vocab=4)
    decoder = make_decoder(target, draft, 3, GREEDY)
    plain = generated(make_decoder(FakeModel(2, n_vocab=6), "none", 0, GREEDY), [1, 2], 30)
    assert generated(decoder, [1, 2], 30) == plain
    assert generated(decoder, [5, 2], 5) == generated(
        make_decoder(FakeModel(2, n_vocab=6), "none", 0, GREEDY), [5, 2], 5
    )


def test_a_draft_never_proposes_a_token_that_the_target_does_not_know() -> None:
    target, draft = FakeModel(2, n_vocab=4), FakeModel(9, n_vocab=7)
    decoder = make_decoder(target, draft, 3, FakeSampler(1.0))
    assert len(generated(decoder, [1, 2], 50)) == 50


@pytest.mark.parametrize("on_gpu", [False, True])
def test_prompts_tell_what_decodes_cost_but_on_a_gpu(clock: Clock, *, on_gpu: bool) -> None:
    """A GPU is not waited for where no logits are wanted."""
    model = FakeModel(1)
    model.n_batch = 100
    model.prepares = model.goes_on = on_gpu
    clock.times(model, {1: 0.1, 100: 1.0})
    cache = Cache(model)
    cache.costs = CostCurve({1: 0.1, 8: 1.0})
    before = cache.costs.at(100)
    list(cache.sync([1] * 100))
    assert (cache.costs.at(100) == before) == on_gpu
