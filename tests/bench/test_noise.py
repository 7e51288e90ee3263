"""How far numbers vary by themselves."""

from math import inf, log

import numpy as np
import pytest

from specli.bench.noise import Noise, percent, pooled


def test_groups_are_pooled_whatever_their_level() -> None:
    noise = pooled([[10.0, 11.0], [100.0, 110.0], [5.0]])
    assert noise.n_free == 2
    assert noise.deviation == pytest.approx(log(1.1) / 2**0.5)
    assert percent(log(1.07)) == "\u00b17%"


def test_of_single_numbers_nothing_is_known() -> None:
    assert pooled([[1.0], [2.0]]).bound(1, 1) == inf
    assert percent(inf) == "-"


@pytest.mark.parametrize(
    ("n_free", "t"), [(1, 12.71), (3, 3.182), (4, 2.776), (6, 2.447), (12, 2.179), (100, 1.984)]
)
def test_few_numbers_know_less(n_free: int, t: float) -> None:
    assert Noise(1.0, n_free).bound(1) / 1.25 == pytest.approx(t, rel=0.03)


def test_what_is_run_again_lies_within_the_bound() -> None:
    rng = np.random.default_rng(0)
    n_inside = 0
    for _ in range(400):
        first, second = np.exp(rng.normal(0.0, 0.05, (2, 6, 3)))
        bound = pooled(first.tolist()).bound(3, 3)
        medians = np.log(np.median(first[0]) / np.median(second[0]))
        n_inside += bool(abs(medians) <= bound)
    assert n_inside >= 0.93 * 400
