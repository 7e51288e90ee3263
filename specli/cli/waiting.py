"""The progress bar of everything but downloads."""

import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from specli.text import terminal_safe


class Waiting:
    """A progress bar with the time left, on the stderr of a terminal."""

    def __init__(self) -> None:
        self._bar: Progress | None = None

    def show(self, what: str, share: float) -> None:
        """Say what is going on, and what share of it, 0 to 1, is done."""
        if self._bar is None:
            if not sys.stderr.isatty():
                return
            columns = (
                *(SpinnerColumn(), TextColumn("{task.description}", markup=False)),
                *(BarColumn(), TimeRemainingColumn()),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
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
