"""What n-grams guess, and how sure they are of it."""

import pytest

from specli.engine.drafters import NgramDrafter
from specli.engine.types import Guess

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


@pytest.mark.parametrize("n_before", [8, 16])
def test_a_copy_of_the_prompt_is_surer_than_a_repetition_of_the_answer(n_before: int) -> None:
    copied, repeated = NgramDrafter(), NgramDrafter()
    copied.prefill(ONCE)
    repeated.prefill([1])
    repeated.observe([1, *ONCE], len(ONCE))
    of_prompt = guess(copied, [3, *ONCE[:n_before]])
    of_answer = guess(repeated, [3, *ONCE[:n_before]])
    assert of_prompt.token == of_answer.token == ONCE[n_before]
    assert of_prompt.confidence > 0.9 > of_answer.confidence


def test_an_answer_is_part_of_the_next_prompt() -> None:
    drafter = NgramDrafter()
    drafter.prefill([1])
    drafter.observe([1, *ONCE], len(ONCE))
    before = guess(drafter, [3, *ONCE[:8]]).confidence
    drafter.prefill([1, *ONCE, 2])
    assert guess(drafter, [3, *ONCE[:8]]).confidence > before
