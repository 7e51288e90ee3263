"""The cost curve: measured, interpolated, and following the machine."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specli.engine.costs import N_MAX, WIDTHS, CostCurve, measure_costs, measure_switch
from tests.fakes import Clock, FakeModel

STEPS = {1: 1.0, 2: 1.9, 3: 2.5, 4: 2.1, 5: 2.8, 8: 3.4, 16: 4.7}


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


@pytest.mark.parametrize("times", [0.8, 1.3])
def test_what_prompts_take_does_not_drift_from_start_to_start(times: float, clock: Clock) -> None:
    """Eight tokens take longer, or less long, in an answer than of an empty sequence."""
    model = FakeModel(0)
    model.n_batch = 64
    clock.times(model, STEPS)
    known, each_s = STEPS, 0.15
    for _ in range(40):
        curve = CostCurve(measure_costs(model, known, 20.0), each_s=each_s)
        for _ in range(10):
            curve.observe(1, times)
            curve.observe(8, times * STEPS[8])
        known, each_s = curve.known(), curve.each_s
    assert curve.at(256) == pytest.approx(255 * 0.15 + times, rel=0.03)


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


def test_measuring_keeps_to_its_budget_and_to_what_is_known(clock: Clock) -> None:
    model = FakeModel(0)
    model.n_batch = 64
    clock.times(model, STEPS)
    measured = measure_costs(model, {}, 20.0)
    assert {1, 4, 8} <= set(measured) < set(range(1, 65))
    assert measured[4] == pytest.approx(2.1)
    assert clock.now <= 20.0
    assert model.length == 0
    assert measure_costs(model, {}, 0.0).keys() == {1}


def test_what_is_known_moves_with_what_is_measured_again(clock: Clock) -> None:
    model = FakeModel(0)
    model.n_batch = 64
    clock.times(model, STEPS)
    measured = measure_costs(model, {}, 200.0)
    of_a_busy_hour = {n: 1.5 * seconds for n, seconds in measured.items()}
    started = clock.now
    again = measure_costs(model, of_a_busy_hour, 20.0)
    assert again == pytest.approx(measured)
    assert clock.now - started <= 20.0
    assert measure_costs(model, measured, 0.0) == pytest.approx(measured)


def test_one_slow_decode_does_not_move_what_is_known(clock: Clock) -> None:
    model = FakeModel(0)
    model.n_batch = 64
    clock.times(model, STEPS | {4: 21.0})
    again = measure_costs(model, STEPS, 100.0)
    assert again[4] == pytest.approx(2.1 / 0.9)
    assert {n: again[n] for n in (1, 8, 16)} == pytest.approx({n: STEPS[n] for n in (1, 8, 16)})
    assert all(0.99 < again[n] / STEPS[n] < 1.12 for n in STEPS)  # those next to it, a little


def test_noise_does_not_make_sizes_dearer_from_start_to_start(clock: Clock) -> None:
    rng = np.random.default_rng(1)
    model = FakeModel(0)
    model.n_batch = 64
    known: dict[int, float] = dict(STEPS)
    for _ in range(100):
        clock.times(
            model, {n: s * (1 + 0.08 * abs(rng.standard_normal())) for n, s in STEPS.items()}
        )
        known = measure_costs(model, known, 20.0)
    assert max(known[n] / STEPS[n] for n in STEPS) < 1.3


@pytest.mark.parametrize("used", [(1, 2, 3, 4), (2, 3, 4, 5)])
def test_sizes_that_nobody_uses_keep_their_distance_from_session_to_session(
    clock: Clock, used: tuple[int, ...]
) -> None:
    """In answers decodes take longer than of an empty sequence; a neighbour comes and goes."""
    rng = np.random.default_rng(1)
    model = FakeModel(0)
    model.n_batch = 64
    true = CostCurve(STEPS | {64: 15.0})
    known = true.known()
    for _ in range(100):
        neighbour = rng.choice([1.0, 1.3])
        now = {n: true.at(n) * (neighbour if n <= 2 else 1.0) for n in known}
        clock.times(model, now)
        curve = CostCurve(measure_costs(model, known, 9.0))
        for n in rng.choice(used, size=60):
            noise = float(np.exp(0.04 * rng.standard_normal()))
            curve.observe(int(n), (1.0 + 0.02 * n) * now[n] * noise)
        known = curve.known()
    assert all(0.9 < known[n] / true.at(n) < 1.25 for n in (5, 8, 16, 64))


def gpu(clock: Clock) -> FakeModel:
    """Return a model that loads kernels at first, and prepares itself for each other size."""
    model = FakeModel(0)
    model.n_batch = model.n_rows = 64
    model.prepares = True
    clock.times(model, STEPS | {64: 9.5}, switch_s=6.0, load_s=90.0)
    return model


def test_what_a_busy_moment_made_dear_is_found_out_though_nobody_uses_it(clock: Clock) -> None:
    true = STEPS | {6: 3.0, 7: 3.2, 9: 3.6, 10: 3.7, 12: 4.1, 24: 6.0}
    model = FakeModel(0)
    model.n_batch = 64
    clock.times(model, true)
    busy = {3: 1.9, 7: 1.7, 9: 2.2, 10: 1.5, 12: 1.3}
    known = {n: seconds * busy.get(n, 1.0) for n, seconds in true.items()}
    for _ in range(40):
        known = measure_costs(model, known, 9.0)
    assert max(known[n] / true[n] for n in true) < 1.15


@pytest.mark.parametrize("asleep", [STEPS, [1], [n for n in STEPS if n > 1], [8, 16]])
def test_what_cannot_be_is_forgotten(clock: Clock, asleep: Iterable[int]) -> None:
    """As of a machine that slept while it measured: it seems to take too long to measure again."""
    model = FakeModel(0)
    model.n_batch = 64
    clock.times(model, STEPS)
    known = {n: s * (1000.0 if n in asleep else 1.0) for n, s in STEPS.items()}
    curve = CostCurve(measure_costs(model, known, 13.0))
    assert all(0.7 < curve.at(n) / STEPS[n] < 1.3 for n in STEPS)  # T(16) may be new


def test_on_a_gpu_every_width_is_measured_warm_at_every_start(clock: Clock) -> None:
    model = gpu(clock)
    measured = measure_costs(model, {}, 10_000.0)
    true = CostCurve(STEPS | {64: 9.5})
    assert measured == pytest.approx({n: true.at(n) for n in WIDTHS})
    of_a_bad_hour = {n: seconds * (40.0 if n == 24 else 1.3) for n, seconds in measured.items()}
    assert measure_costs(model, of_a_bad_hour, 10_000.0) == pytest.approx(measured)
    assert measure_switch(model) == pytest.approx(6.0)


def test_on_a_gpu_what_was_not_measured_warm_is_not_believed(clock: Clock) -> None:
    measured = measure_costs(gpu(clock), {}, 1100.0)
    assert measured
    assert max(measured.values()) < 10.0
    assert measure_costs(gpu(clock), {}, 0.0).keys() == {1}


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
