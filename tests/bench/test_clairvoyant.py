"""The clairvoyant bound on cases small enough to reckon by hand."""

import pytest

from specli.bench.clairvoyant import Costs, least_seconds, ngram_lengths, runs_of_right

FLAT = Costs({1: 1.0, 4: 1.0, 8: 1.0}, draft_s=0.1)


def test_without_right_guesses_it_is_plain_decoding() -> None:
    assert least_seconds(FLAT, [0] * 5, [0] * 5) == 5.0


def test_free_guesses_are_all_taken_and_the_last_token_is_the_targets() -> None:
    assert least_seconds(FLAT, [0] * 6, [6, 5, 4, 3, 2, 1]) == 1.0
    assert least_seconds(FLAT, [0] * 9, list(range(9, 0, -1))) == 2.0  # 8 rows at most


def test_the_models_guesses_are_paid_for() -> None:
    assert least_seconds(FLAT, [3, 2, 1, 0], [0] * 4) == pytest.approx(1.3)
    assert least_seconds(Costs({1: 1.0, 4: 1.0}, draft_s=2.0), [3, 2, 1, 0], [0] * 4) == 4.0


def test_the_cheaper_of_two_drafters_is_asked() -> None:
    # One pass with three guesses of the model (1.3), or two with one free guess each (2.0).
    assert least_seconds(FLAT, [3, 2, 1, 0], [1, 0, 1, 0]) == pytest.approx(1.3)
    assert least_seconds(Costs(FLAT.target_s, 0.5), [3, 2, 1, 0], [1, 0, 1, 0]) == 2.0


def test_a_steep_curve_forbids_long_rounds() -> None:
    steep = Costs({1: 1.0, 2: 1.5, 3: 9.0, 4: 9.0}, draft_s=0.0)
    assert least_seconds(steep, [3, 2, 1, 0], [0] * 4) == 3.0


def test_a_larger_pass_is_taken_where_it_is_cheaper() -> None:
    costs = Costs({1: 1.0, 2: 2.0, 3: 3.0, 4: 1.5, 8: 2.5}, draft_s=0.0)
    assert costs.envelope() == [1.0, 1.5, 1.5, 1.5, 1.75, 2.0, 2.25, 2.5]
    assert least_seconds(costs, [1, 0], [0, 0]) == 1.5


def test_runs_of_right() -> None:
    assert runs_of_right([True, True, False, True]) == [2, 1, 0, 1]
    assert runs_of_right([]) == []


def test_an_ngram_continues_what_stood_there_before() -> None:
    #                     1 2 3 4 5 |9 1 2 3 4 7
    assert ngram_lengths([1, 2, 3, 4, 5], [9, 1, 2, 3, 4, 7]) == [0, 0, 0, 2, 1, 0]


def test_the_longest_suffix_decides() -> None:
    # After 8 1 2 stood 3, after the later 9 1 2 stood 4.
    assert ngram_lengths([8, 1, 2, 3, 9, 1, 2, 4, 8, 1, 2], [3])[0] == 1
    assert ngram_lengths([8, 1, 2, 3, 9, 1, 2, 4, 8, 1, 2], [4])[0] == 0


def test_the_commonest_follower_counts_beside_the_latest() -> None:
    prompt = [1, 2, 3, 0, 1, 2, 3, 9, 1, 2, 4, 5, 1, 2]
    assert [ngram_lengths(prompt, [token])[0] for token in (3, 4, 5)] == [1, 1, 0]
