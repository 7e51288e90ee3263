"""What n-grams guess, and how sure they are of it; what a model does with what may follow."""

import numpy as np
import pytest

from specli.engine.cache import Cache
from specli.engine.drafters import ModelDrafter, NgramDrafter
from specli.engine.types import Guess
from tests.fakes import FakeModel, FakeSampler

ONCE = list(range(100, 120))


def guess(drafter: NgramDrafter, context: list[int]) -> Guess:
    found = drafter.guess(context)
    assert found is not None
    return found


def test_the_longest_match_and_the_most_frequent_follower_count() -> None:
    drafter = NgramDrafter((2, 1))
    drafter.prefill([1, 2, 7, 1, 2, 7, 1, 2, 8, 5, 2, 9, 2, 9, 2, 9])
    assert guess(drafter, [1, 2]).token == 7
    assert guess(drafter, [4, 2]).token == 9  # 1 2 is no match here
    assert drafter.guess([4, 4]) is None
    assert drafter.guess([]) is None


def test_what_was_followed_by_several_tokens_is_less_sure() -> None:
    always, mostly = NgramDrafter((2,)), NgramDrafter((2,))
    always.prefill([1, 2, 7] * 4)
    mostly.prefill([1, 2, 7] * 3 + [1, 2, 8])
    assert guess(always, [1, 2]).confidence > guess(mostly, [1, 2]).confidence


@pytest.mark.parametrize(("n_before", "confidence"), [(12, 0.92), (32, 0.97)])
def test_a_copy_of_the_prompt_is_surer_than_a_repetition_of_the_answer(
    n_before: int, confidence: float
) -> None:
    text = list(range(100, 140))
    copied, repeated = NgramDrafter(), NgramDrafter()
    copied.prefill(text)
    repeated.prefill([1])
    repeated.observe([1, *text], len(text))
    of_prompt = guess(copied, [3, *text[:n_before]])
    of_answer = guess(repeated, [3, *text[:n_before]])
    assert of_prompt.token == of_answer.token == text[n_before]
    assert of_prompt.confidence == confidence > of_answer.confidence


def test_a_text_that_resembles_itself_is_copied_on_from_where_it_was() -> None:
    drafter = NgramDrafter()
    form, other = list(range(50, 59)), [3, *range(50, 59)]
    drafter.prefill([*ONCE, *form, 7, *other, 8, 4, *other, 8, 5, *other, 9])
    copied = guess(drafter, [*ONCE, *form])
    assert copied.token == 7
    assert copied.confidence > 0.9  # the others, whose match is short, do not count
    assert guess(drafter, [2, *form]).token == 8


def test_an_answer_is_part_of_the_next_prompt() -> None:
    drafter = NgramDrafter()
    drafter.prefill([1])
    drafter.observe([1, *ONCE], len(ONCE))
    before = guess(drafter, [3, *ONCE[:16]]).confidence
    drafter.prefill([1, *ONCE, 2])
    assert guess(drafter, [3, *ONCE[:16]]).confidence > before


def drafter_of(model: FakeModel, temperature: float = 1.0) -> ModelDrafter:
    rng = np.random.default_rng(5)
    return ModelDrafter(Cache(model), FakeSampler(temperature), model.n_vocab, rng)


def guesses(drafter: ModelDrafter, n: int, along: list[int]) -> list[Guess]:
    """Return n guesses after the same prompt, the first of which reads along."""
    context, made = [1, 2, 3], []
    for _ in range(n):
        made.append(drafter.guess(context, along))
        context, along = [*context, made[-1].token], []
    return made


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("n_right", [0, 1, 3, 6])
def test_what_is_read_along_changes_no_guess_and_saves_decodes(
    n_right: int, temperature: float
) -> None:
    model, other = FakeModel(3, 9), FakeModel(3, 9)
    model.n_batch = 16
    wanted = guesses(drafter_of(other, temperature), 7, [])
    right = [guess.token for guess in wanted[:n_right]]
    wrong = (wanted[n_right].token + 1) % 9
    drafter = drafter_of(model, temperature)
    made = guesses(drafter, 7, [*right, wrong])
    assert [guess.token for guess in made] == [guess.token for guess in wanted]
    assert [guess.confidence for guess in made] == [guess.confidence for guess in wanted]
    assert model.n_decodes == other.n_decodes - n_right
    text = [1, 2, 3, *(guess.token for guess in made)]
    assert drafter.n_behind(text) == 1
    drafter.observe([1, 2, 3, made[0].token, 8], 2)
    assert model.tokens == ([1, 2, 3, made[0].token] if made[0].token != 8 else [1, 2, 3])


def test_what_was_read_along_and_expected_costs_nothing() -> None:
    drafter = drafter_of(FakeModel(3, 9), 0.0)
    first, second = guesses(drafter_of(FakeModel(3, 9), 0.0), 2, [])
    assert drafter.guess([1, 2, 3], [first.token, second.token]).token == first.token
    assert drafter.n_behind([1, 2, 3, first.token]) == 0
    assert drafter.n_behind([1, 2, 3, first.token, second.token]) == 0
    assert drafter.n_behind([1, 2, 3, first.token, second.token, 4]) == 1


def test_as_much_is_read_along_as_there_is_room_for() -> None:
    along = [4] * 20
    for model, n in (
        (FakeModel(3, 9), 8),  # tokens in a batch
        (FakeModel(3, 9, n_ctx=7), 7),
        (FakeModel(3, 4), 3),  # it does not know the token
        (FakeModel(3, 9, n_ctx=3), 3),
    ):
        seen: list[int] = []
        model.on_decode = seen.append
        drafter_of(model).guess([1, 2, 3], along)
        assert seen == [n]
    narrow, seen = FakeModel(3, 9), []
    narrow.n_rows, narrow.on_decode = 2, seen.append
    drafter_of(narrow).guess([1, 2, 3], along)
    assert seen == [4]


def test_after_another_prompt_nothing_is_left_of_what_was_read_along() -> None:
    drafter = drafter_of(FakeModel(3, 9), 0.0)
    first = guesses(drafter_of(FakeModel(3, 9), 0.0), 1, [])[0]
    drafter.guess([1, 2, 3], [first.token, 4, 5])
    list(drafter.prefill([7, 7, 2, 1]))
    alone = drafter_of(FakeModel(3, 9), 0.0)
    assert drafter.guess([7, 7, 2, 1]) == alone.guess([7, 7, 2, 1])
