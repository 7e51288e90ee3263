"""The progress bar of everything but downloads."""

import sys
import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
)
from rich.table import Column
from rich.text import Text

from specli.cli.screen import is_unicode
from specli.cli.terminals import is_dumb
from specli.text import terminal_safe

_REST = 20  # columns for spinner, bar and time


class _TimeLeft(ProgressColumn):
    """How long it takes at the speed up to now, and no longer than is known."""

    max_refresh = 0.5
    at_most: float | None = None

    def render(self, task: Task) -> Text:
        """Return hours, minutes and seconds."""
        left = task.time_remaining
        if self.at_most is not None:
            most = max(0.0, self.at_most - time.perf_counter())
            left = most if left is None else min(left, most)
        if left is None:
            return Text("-:--:--", "progress.remaining")
        minutes, seconds = divmod(int(left), 60)
        return Text(f"{minutes // 60}:{minutes % 60:02}:{seconds:02}", "progress.remaining")


class Waiting:
    """A progress bar with the time left, on the stderr of a terminal."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._left = _TimeLeft()

    def until(self, at_most: float) -> None:
        """Know when it ends at the latest, by time.perf_counter."""
        self._left.at_most = at_most

    def show(self, what: str, share: float) -> None:
        """Say what is going on, and what share of it, 0 to 1, is done."""
        if self._bar is None:
            if not sys.stderr.isatty() or is_dumb():
                return
            console = Console(stderr=True)
            has_unicode = is_unicode(console.encoding)
            what_it_is = Column(
                no_wrap=True,
                overflow="ellipsis" if has_unicode else "crop",
                max_width=max(console.width - _REST, _REST),
            )
            columns = (
                SpinnerColumn("dots" if has_unicode else "line"),
                TextColumn("{task.description}", markup=False, table_column=what_it_is),
                *(BarColumn(), self._left),
            )
            self._bar = Progress(*columns, console=console, transient=True, redirect_stdout=False)
            self._bar.add_task("", total=1.0)
            self._bar.start()
        task = self._bar.task_ids[0]
        self._bar.update(task, description=terminal_safe(what), completed=share)

    def restart(self) -> None:
        """Begin anew: what was shown until now took its own time."""
        if self._bar:
            self._bar.reset(self._bar.task_ids[0])

    def close(self) -> None:
        """Take the bar away."""
        if self._bar:
            self._bar.stop()
            self._bar = None
