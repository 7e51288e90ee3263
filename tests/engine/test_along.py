"""How much a draft reads along."""

import pytest

from specli.engine.along import DRAFT_ROWS, read_along
from specli.engine.costs import CostCurve, ratios_of_rows

DRAFT = CostCurve({1: 30.0, 64: 500.0})
ROWS = CostCurve({1: 1.0, 64: 1.6})


def test_what_is_sure_to_be_agreed_with_is_read_as_far_as_there_is_room() -> None:
    assert read_along(DRAFT, ROWS, 1.0, 1, 12)[0] == 12
    assert read_along(DRAFT, ROWS, 1.0, 1, 100)[0] == DRAFT_ROWS - 1


def test_what_is_not_agreed_with_is_not_read() -> None:
    assert read_along(DRAFT, ROWS, 0.3, 1, 12) == (0, 0.0)
    assert read_along(DRAFT, ROWS, 1.0, 1, 0) == (0, 0.0)


def test_the_surer_the_more() -> None:
    n, saved_s = zip(*(read_along(DRAFT, ROWS, a, 1, 20) for a in (0.6, 0.8, 0.95)), strict=True)
    assert 0 < n[0] < n[1] < n[2]
    assert 0.0 < saved_s[0] < saved_s[1] < saved_s[2]


def test_whole_blocks_are_read_where_the_kernels_work_in_blocks() -> None:
    steps = CostCurve({1: 30.0, 2: 70.0, 4: 70.0, 5: 140.0, 8: 140.0, 9: 210.0, 12: 210.0})
    one = CostCurve({1: 1.0, 64: 1.0})
    assert {read_along(steps, one, a / 20, 1, 11)[0] for a in range(1, 21)} == {0, 3, 7, 11}


def test_many_rows_are_dear_where_they_are_dear_and_tried_again_later() -> None:
    learned = ratios_of_rows(DRAFT)
    assert learned.at(1) == pytest.approx(1.0)
    assert all(learned.at(n) >= 1.0 for n in range(1, 65))
    assert read_along(DRAFT, learned, 0.9, 1, 7)[0] == 7
    for _ in range(20):
        learned.observe(8, 8 * DRAFT.at(1) / DRAFT.at(8))
    assert read_along(DRAFT, learned, 0.9, 1, 7)[0] < 7
    for _ in range(300):
        learned.fade()  # decodes of one row
    assert read_along(DRAFT, learned, 0.9, 1, 7)[0] == 7
