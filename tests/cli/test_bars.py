"""Progress bars, as a terminal gets them."""

import io
import time

import pyte
import pytest
from rich.console import Console
from rich.progress import TextColumn

from specli.cli.bars import SteadyProgress
from specli.cli.waiting import _TimeLeft
from tests.cli.terminal import Strict


def drawn(n_bars: int) -> tuple[SteadyProgress, io.StringIO]:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=40, height=10, legacy_windows=False)
    bars = SteadyProgress(
        TextColumn("{task.description}"), console=console, transient=True, auto_refresh=False
    )
    bars.start()
    for i in range(n_bars):
        bars.add_task(f"bar {i}")
    return bars, out


@pytest.mark.parametrize("n_bars", [1, 3])
def test_whatever_a_resize_makes_of_bars_is_below_the_cursor(n_bars: int) -> None:
    bars, out = drawn(n_bars)
    screen = Strict(40, 10)
    stream = pyte.Stream(screen)
    stream.feed("before\r\n")

    def show() -> None:
        stream.feed(out.getvalue().replace("\n", "\r\n"))
        out.truncate(out.seek(0))

    for _ in range(3):
        bars.refresh()
        show()
        assert screen.rows[: n_bars + 2] == ["before", *(f"bar {i}" for i in range(n_bars)), ""]
        assert (screen.cursor.y, screen.cursor.x) == (1, 0)
    stream.feed("\x1b7\x1b[5;1Ha row that was broken in two\x1b8")
    bars.refresh()
    show()
    bars.console.print("said meanwhile")
    show()
    assert screen.rows[1:4] == ["said meanwhile", "bar 0", "bar 1" if n_bars > 1 else ""]
    assert "a row that was broken in two" not in screen.rows
    bars.stop()
    show()
    assert [row for row in screen.rows if row] == ["before", "said meanwhile"]
    assert (screen.cursor.y, screen.cursor.x) == (2, 0)


def test_no_more_time_is_said_to_be_left_than_there_is() -> None:
    bars, _ = drawn(1)
    (task,) = bars.tasks
    left = _TimeLeft()
    assert left.render(task).plain == "-:--:--"
    left.at_most = time.perf_counter() + 100.9
    assert left.render(task).plain == "0:01:40"
    left.at_most = 0.0
    assert left.render(task).plain == "0:00:00"
