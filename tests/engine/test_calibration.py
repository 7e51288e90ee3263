"""What is measured when a session begins, and what becomes of what was known before."""

from collections.abc import Iterable

import numpy as np
import pytest

from specli.engine.calibration import measure_costs, measure_switch
from specli.engine.costs import WIDTHS, CostCurve
from tests.fakes import STEPS, Clock, FakeModel


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
