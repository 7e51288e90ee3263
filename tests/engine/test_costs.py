"""The cost curve: interpolated, and following the machine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specli.engine.costs import N_MAX, CostCurve
from tests.fakes import STEPS


def test_what_was_measured_is_kept_with_its_steps() -> None:
    curve = CostCurve(STEPS)
    assert all(curve.at(n) == pytest.approx(seconds) for n, seconds in STEPS.items())
    assert curve.at(4) < curve.at(3)
    assert curve.at(12) == pytest.approx((3.4 + 4.7) / 2)
    assert curve.at(17) == pytest.approx(4.7 + (4.7 - 3.4) / 8)
    assert curve.at(2 * N_MAX) == pytest.approx(2 * curve.at(N_MAX))


def test_one_measurement_is_enough_to_start() -> None:
    curve = CostCurve({1: 0.2})
    assert curve.at(1) == pytest.approx(0.2)
    assert 0.2 < curve.at(2) < 0.4


def test_what_a_prompt_takes_is_learned_from_prompts() -> None:
    curve = CostCurve(STEPS)
    curve.read(N_MAX, 0.1)  # no large batch
    assert curve.at(256) == pytest.approx(256 / N_MAX * curve.at(N_MAX))
    curve.read(200, 10.0)
    assert curve.at(200) == pytest.approx(10.0)
    assert curve.at(399) == pytest.approx(19.0)
    for _ in range(20):
        curve.read(100, 10.0)
    assert curve.at(199) == pytest.approx(19.0, rel=0.02)
    curve.read(100, 10_000.0)  # the machine slept
    assert curve.at(199) < 21.0
    assert all(curve.at(n) == pytest.approx(seconds) for n, seconds in STEPS.items())
    again = CostCurve(curve.known(), each_s=curve.each_s)
    assert all(again.at(n) == pytest.approx(curve.at(n)) for n in (1, 5, 17, 64, 199))


def test_beyond_what_was_measured_a_curve_goes_on_to_what_a_prompt_takes() -> None:
    """1.5B in Q4_K_M: by T(8) - T(4) 64 tokens would take 3 s, and would never be tried."""
    few = {1: 0.039, 2: 0.066, 4: 0.109, 8: 0.288}
    curve = CostCurve(few, all_rows=True)
    assert curve.at(64) > 2.5
    curve.read(256, 3.2)
    assert curve.at(64) == pytest.approx(0.93, rel=0.2)
    assert curve.at(32) == pytest.approx(0.54, rel=0.2)
    assert all(curve.at(n) == pytest.approx(seconds) for n, seconds in few.items())
    for _ in range(20):
        curve.observe(24, 0.475)
        curve.read(256, 4.0)
    assert curve.at(24) == pytest.approx(0.475, rel=0.02)  # what is known of one size stays


def test_a_first_prompt_in_a_busy_moment_is_not_believed() -> None:
    curve = CostCurve({1: 0.011, 2: 0.015, 4: 0.020, 8: 0.030})
    believed = curve.at(183)
    curve.read(183, 10 * believed)
    assert curve.at(183) < 1.2 * believed
    curve.read(183, believed / 2)
    assert curve.at(183) == pytest.approx(believed / 2)


def test_what_prompts_take_does_not_move_what_sizes_take_that_were_used() -> None:
    curve = CostCurve({1: 0.04, 4: 0.109, 8: 0.249}, all_rows=True)
    curve.observe(12, 0.4)
    at = curve.at(12)
    for _ in range(9):
        curve.read(256, 3.2)
    assert curve.at(12) == pytest.approx(at)
    again = CostCurve(curve.known(), each_s=curve.each_s, all_rows=True)
    assert again.at(64) == pytest.approx(curve.at(64), rel=0.02)
    curve.read(256, 0.1)
    assert curve.at(64) > 0.99 * at  # never less than few tokens


def test_a_slower_machine_is_followed_at_every_n_within_a_few_rounds() -> None:
    curve = CostCurve(STEPS)
    for _ in range(10):
        curve.observe(4, 2 * 2.1)
    for n, seconds in STEPS.items():
        assert curve.at(n) == pytest.approx(2 * seconds, rel=0.05)


def test_a_few_slow_decodes_move_nothing() -> None:
    curve = CostCurve(STEPS)
    for i in range(30):
        curve.observe(1, 30.0 if i % 10 == 5 else 1.0)
    assert curve.at(1) == pytest.approx(1.0, rel=0.05)
    assert curve.at(8) == pytest.approx(3.4, rel=0.05)


def test_a_first_decode_that_is_faster_than_believed_is_believed() -> None:
    curve = CostCurve(STEPS)
    curve.observe(1, 0.5)
    assert curve.at(1) == pytest.approx(0.5)
    curve.observe(1, 0.1)
    assert curve.at(1) > 0.4


def test_a_machine_that_becomes_faster_is_not_taken_for_a_cheap_size() -> None:
    curve = CostCurve(STEPS)
    for _ in range(20):
        curve.observe(1, 2.0)
    curve.observe(8, 3.4)
    for _ in range(30):
        curve.observe(1, 1.0)
    assert 3.4 * 0.95 < curve.at(8) < 3.4 * 1.3


def test_another_shape_is_learned_where_it_is_used() -> None:
    """A neighbour who takes memory bandwidth: one row slows down, eight rows do not."""
    curve = CostCurve(STEPS)
    for _ in range(20):
        curve.observe(1, 2.0)
        curve.observe(8, 3.4)
    assert curve.at(1) == pytest.approx(2.0, rel=0.05)
    assert curve.at(8) == pytest.approx(3.4, rel=0.05)
    assert curve.at(9) / STEPS[8] < 1.2
    again = CostCurve(curve.known())
    assert again.at(8) / again.at(1) == pytest.approx(1.7, rel=0.05)


@given(st.lists(st.tuples(st.integers(-3, 100), st.floats(0, 1e6)), max_size=60))
def test_no_observation_breaks_it(observed: list[tuple[int, float]]) -> None:
    curve = CostCurve(STEPS)
    for n, seconds in observed:
        curve.observe(n, seconds)
    assert np.isfinite(curve.seconds()).all()
    assert (curve.seconds()[1:] > 0).all()


def test_a_change_of_size_teaches_what_a_change_costs_and_nothing_else() -> None:
    curve = CostCurve({1: 4.0, 8: 7.0}, switch_s=2.0)
    for _ in range(40):
        for n, seconds in ((8, 9.0), (8, 10.0), (8, 7.0), (1, 6.0), (1, 7.0), (1, 4.0)):
            curve.observe(n, seconds)
    assert curve.switch_s == pytest.approx(5.0, rel=0.05)
    assert curve.at(8) == pytest.approx(7.0)
    assert curve.at(1) == pytest.approx(4.0)


def test_a_decode_that_was_slowed_tells_nothing_but_its_size() -> None:
    curve = CostCurve({1: 4.0, 8: 7.0}, switch_s=3.0)
    for _ in range(20):
        curve.observe(1, 4.0)
        curve.observe(8, None)
        curve.observe(8, 7.0)
    assert curve.at(8) == pytest.approx(7.0)
    assert curve.switch_s == pytest.approx(3.0, rel=0.2)
