"""A draft reads a prompt where its guesses pay for that, at once or later."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from specli.engine.acceptance import GREEDY_RATES, TRUE_RATES, Acceptance
from specli.engine.costs import CostCurve
from specli.engine.decode import Decoder
from specli.engine.drafters import ModelDrafter
from specli.engine.planner import AutoPlanner
from specli.engine.reading import Reading
from specli.engine.stats import Stats
from specli.engine.types import DraftPrefill, End, Event, Planner, Prefill, Round
from specli.errors import Interrupted
from tests.fakes import Clock, FakeModel, FakeSampler, generated, make_decoder

GREEDY = FakeSampler(temperature=0.0)
TARGET = {1: 1.0, 8: 1.3, 64: 3.0}
DRAFT = {1: 0.1, 64: 6.4}  # a tenth of a token of plain decoding for each token of the prompt
USELESS = {1: 2.0, 64: 6.4}
PROMPT = [1, 2, 3, 4] * 50
LONG = [1, 2, 3, 4] * 500


def planner(draft_s: dict[int, float] = DRAFT) -> AutoPlanner:
    acceptance = {"draft": Acceptance(GREEDY_RATES), "ngram": Acceptance(TRUE_RATES)}
    return AutoPlanner(CostCurve(TARGET), CostCurve(draft_s), acceptance)


def decoder_of(
    clock: Clock, plan: Planner | int, draft_s: dict[int, float] = DRAFT, noise: float = 0.0
) -> Decoder:
    target = FakeModel(1, 40, spread=4.0, n_ctx=10_000)
    draft = FakeModel(1, 40, spread=4.0, noise=noise, n_ctx=10_000)
    target.n_batch = draft.n_batch = 64
    clock.times(target, TARGET)
    clock.times(draft, draft_s)
    decoder = make_decoder(target, draft, plan, GREEDY)
    decoder.lookup = None
    return decoder


def seconds_of(
    clock: Clock, plan: Planner | int, prompt: list[int], n: int, draft_s: dict[int, float] = DRAFT
) -> float:
    """Return what an answer takes in all, its prompt included."""
    started = clock.now
    decoder = decoder_of(clock, plan, draft_s)
    if plan == 0:
        decoder.drafter = None
    generated(decoder, prompt, n)
    return clock.now - started


@pytest.fixture
def plain() -> list[int]:
    model = FakeModel(1, 40, spread=4.0, n_ctx=10_000)
    model.n_batch = 64
    return generated(make_decoder(model, "none", 0, GREEDY), LONG, 60)


@pytest.mark.parametrize("n", [1, 10, 100, 280, 2000])
@pytest.mark.parametrize("prompt", [PROMPT, LONG], ids=["200", "2000"])
def test_with_its_prompt_an_answer_takes_little_longer_than_plain_decoding(
    clock: Clock, prompt: list[int], n: int
) -> None:
    plain_s = seconds_of(clock, 0, prompt, n)
    assert seconds_of(clock, planner(), prompt, n) <= 1.01 * plain_s
    if n == 2000:
        assert seconds_of(clock, planner(), prompt, n) < 0.85 * plain_s


def test_what_pays_is_read_at_once(clock: Clock) -> None:
    decoder = decoder_of(clock, planner())
    events = list(decoder.generate(PROMPT, 200))
    assert not any(isinstance(event, DraftPrefill) for event in events)
    assert next(event for event in events if isinstance(event, Round)).guesses


def test_what_a_prompt_takes_is_known_after_the_first(clock: Clock) -> None:
    """By what few tokens take it had seemed ten times as dear, and had not been read."""
    decoder = decoder_of(clock, 0)
    assert isinstance(decoder.drafter, ModelDrafter)
    cache = decoder.drafter.cache
    assert isinstance(cache.model, FakeModel)
    cache.costs = CostCurve({1: 0.1, 2: 1.1})
    assert cache.costs.at(200) > 190.0
    cache.model.n_batch = 100
    clock.times(cache.model, {1: 0.1, 100: 10.0})
    assert list(decoder.drafter.prefill([*PROMPT, 1])) == [200, 100, 0]
    assert cache.costs.at(200) == pytest.approx(20.0)
    assert cache.costs.at(2) == pytest.approx(1.1)


def test_a_fixed_number_of_guesses_is_made_whatever_it_costs(clock: Clock) -> None:
    decoder = decoder_of(clock, 3)
    assert next(e for e in decoder.generate(LONG, 4) if isinstance(e, Round)).n_drafted == 3


@pytest.mark.parametrize(
    ("n_ctx", "n_draft_ctx", "n"), [(202, 202, None), (202, 10_000, None), (10_000, 205, 256)]
)
def test_where_there_is_no_room_for_guesses_nothing_is_read(
    clock: Clock, n_ctx: int, n_draft_ctx: int, n: int | None
) -> None:
    decoder = decoder_of(clock, planner())
    assert isinstance(decoder.drafter, ModelDrafter)
    target, draft = decoder.target.model, decoder.drafter.cache.model
    assert isinstance(target, FakeModel)
    assert isinstance(draft, FakeModel)
    target.n_ctx, draft.n_ctx = n_ctx, n_draft_ctx
    *_, last = decoder.generate(PROMPT, n)
    assert last == End("length" if n else "context")
    assert decoder.drafter.seconds == 0.0


@pytest.mark.parametrize(("n_prompt", "n"), [(2000, 100), (4000, 300), (600, 40), (1000, 1)])
def test_new_prompts_one_after_the_other_cost_no_more_than_plain_decoding(
    clock: Clock, n_prompt: int, n: int
) -> None:
    """What earlier answers missed is no reason to read what comes now."""

    def session_s(plan: Planner | int) -> float:
        decoder, started = decoder_of(clock, plan), clock.now
        if plan == 0:
            decoder.drafter = None
        for i in range(12):
            generated(decoder, [i % 40] * 2 + [1, 2, 3, 4] * (n_prompt // 4), n)
        return clock.now - started

    assert session_s(planner()) <= 1.02 * session_s(0)


def test_what_cannot_pay_is_not_read(clock: Clock) -> None:
    decoder = decoder_of(clock, planner(draft_s=USELESS), USELESS)
    events = list(decoder.generate(PROMPT, 100))
    assert [e for e in events if isinstance(e, DraftPrefill)] == [DraftPrefill(199, 0.0)]
    assert not any(event.guesses for event in events if isinstance(event, Round))
    assert decoder.drafter is not None
    assert decoder.drafter.seconds == 0.0


def test_a_draft_of_no_use_gets_a_little_time_from_answer_to_answer(clock: Clock) -> None:
    decoder = decoder_of(clock, planner(draft_s=USELESS), USELESS)
    assert decoder.drafter is not None
    started = clock.now
    for _ in range(50):
        generated(decoder, PROMPT, 100)
    assert 0.0 < decoder.drafter.seconds < 0.02 * (clock.now - started)


def test_what_is_read_later_comes_bit_by_bit_and_counts(clock: Clock) -> None:
    decoder = decoder_of(clock, planner())
    stats, events = Stats("draft"), []
    for event in decoder.generate(LONG, 2000):
        stats.add(event)
        events.append(event)
    left = [event.n_left for event in events if isinstance(event, DraftPrefill)]
    assert left[0] == 1999
    assert left[-1] == 0
    assert all(0 < a - b <= 64 for a, b in pairwise(left[1:]))  # with the answer so far
    prefill = [event for event in events if isinstance(event, Prefill)][-1]
    read_s = sum(event.seconds for event in events if isinstance(event, DraftPrefill))
    assert read_s > 199.9
    assert stats.draft_unread_n == 0
    assert stats.prompt_s == pytest.approx(prefill.seconds)
    assert stats.draft_s > read_s  # it is waited for while the answer comes
    assert stats.as_dict()["draft_unread_n"] == 0
    ready = events.index(next(e for e in events if isinstance(e, DraftPrefill) and not e.n_left))
    assert not any(e.guesses for e in events[:ready] if isinstance(e, Round))
    assert sum(len(e.guesses) for e in events[ready:] if isinstance(e, Round)) > 100


def test_the_text_is_the_same_however_much_was_read(clock: Clock, plain: list[int]) -> None:
    decoder = decoder_of(clock, planner(), noise=1.0)
    for n in (60, 20, 60):
        assert generated(decoder, LONG, n) == plain[:n]


def drained(events: Iterator[Event], n_left: int) -> None:
    """Take events until so many tokens are unread at most."""
    for event in events:
        if isinstance(event, DraftPrefill) and event.n_left <= n_left:
            return
    raise AssertionError("it was never read so far")


@pytest.mark.parametrize("n_left", [1999, 1500, 1000])
def test_an_answer_may_be_left_in_the_middle_of_a_prompt(
    clock: Clock, plain: list[int], n_left: int
) -> None:
    decoder = decoder_of(clock, planner(), noise=1.0)
    events = decoder.generate(LONG, 2000)
    drained(events, n_left)
    del events
    assert generated(decoder, LONG, 60) == plain
    assert generated(decoder, PROMPT, 5) == generated(decoder, PROMPT, 5)
    assert generated(decoder, LONG, 60) == plain


def test_an_interruption_while_it_is_read(clock: Clock, plain: list[int]) -> None:
    decoder = decoder_of(clock, planner(), noise=1.0)
    assert isinstance(decoder.drafter, ModelDrafter)
    model = decoder.drafter.cache.model
    assert isinstance(model, FakeModel)
    passes = model.on_decode

    def interrupt(n: int) -> BaseException | None:
        passes(n)
        return Interrupted("interrupted") if n == 64 else None

    model.on_decode = interrupt
    *_, last = decoder.generate(LONG, 2000)
    assert last == End("interrupted")
    model.on_decode = passes
    assert generated(decoder, LONG, 60) == plain


def waited(reading: Reading, n: int, saved: float = 0.5) -> Reading:
    """Let n tokens come one by one while the prompt is unread."""
    for _ in range(n):
        reading.observe(1)
        reading.miss(1, 1.0, saved)
    return reading


def answered(*lengths: int) -> Reading:
    """Return one that saw answers of so many tokens."""
    reading = Reading()
    for length in lengths:
        reading.observe(length)
        reading.begin()
    return reading


def test_what_was_refused_at_first_is_read_when_as_much_was_missed() -> None:
    reading = waited(Reading(), 100)
    assert not reading.pays(200.0, 10_000, 1.0, 0.5)
    assert not reading.pays(51.0, 10_000, 1.0, 0.5)
    for seconds in (50.0, 30.0, 10.0):
        assert reading.pays(seconds, 10_000, 1.0, 0.5)


def test_what_was_begun_is_read_to_its_end() -> None:
    reading = waited(Reading(), 100)
    assert not reading.pays(200.0, 10_000, 1.0, 0.5)
    assert reading.pays(50.0, 10_000, 1.0, 0.5)
    assert reading.pays(30.0, 10, 1.0, 0.0)
    reading.begin()
    assert not reading.pays(30.0, 10, 1.0, 0.0)


def test_what_the_rest_of_an_answer_cannot_pay_for_is_not_begun() -> None:
    reading = waited(Reading(), 1000)
    assert not reading.pays(60.0, 100, 1.0, 0.5)
    assert not reading.pays(60.0, 119, 1.0, 0.5)
    assert reading.pays(60.0, 120, 1.0, 0.5)


def test_answers_are_expected_to_be_as_long_as_those_before() -> None:
    assert Reading().pays(100.0, 10_000, 1.0, 0.5)
    assert not Reading().pays(200.0, 10_000, 1.0, 0.5)
    assert not answered(*[20] * 10).pays(100.0, 10_000, 1.0, 0.5)
    assert answered(*[2000] * 10).pays(200.0, 10_000, 1.0, 0.5)
    assert answered(*[20] * 10).pays(10.0, 10_000, 1.0, 0.5)


def test_an_answer_that_goes_on_and_on_gets_its_draft() -> None:
    reading = answered(*[20] * 10)
    assert not reading.pays(100.0, 10_000, 1.0, 0.5)
    n = next(n for n in range(1000) if waited(reading, 1).pays(100.0, 10_000, 1.0, 0.5))
    assert n == 199


def test_what_earlier_answers_missed_pays_for_nothing_but_a_hundredth() -> None:
    for seconds, is_paid in ((11.0, False), (10.0, True)):
        reading = waited(Reading(), 1001)
        reading.begin()
        assert reading.pays(seconds, 10, 1.0, 0.5) == is_paid
        reading.begin()
        assert reading.pays(10.0, 10, 1.0, 0.5) != is_paid


def test_a_little_is_read_whatever_is_believed() -> None:
    assert Reading().pays(1.0, 100, 1.0, 0.0)
    assert not Reading().pays(1.1, 100, 1.0, 0.0)
