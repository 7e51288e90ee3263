"""How far downloads are: bars on a terminal, a line at the start of each elsewhere."""

import sys
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Column

from specli.cli.screen import is_unicode
from specli.cli.streams import say
from specli.cli.terminals import is_dumb
from specli.errors import Interrupted
from specli.models.download import Progress as HubProgress
from specli.text import human_size, terminal_safe


class Downloads:
    """Shows the downloads of one command on stderr; a context, so that the bars go away again."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskID] = {}
        self._checking: set[str] = set()
        self._said: set[str] = set()
        self._bars: Progress | None = None

    def __enter__(self) -> "Downloads":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Take the bars away, and say what an interrupted download leaves."""
        if self._bars:
            self._bars.stop()
        if isinstance(error, Interrupted):
            say("interrupted", error.message)
        elif isinstance(error, KeyboardInterrupt):  # before the first byte, or for a second time
            say("interrupted", "what has not come whole is not kept")

    def show(self, progress: HubProgress) -> None:
        """Show how far one model is."""
        if progress.name not in self._said:
            self._said.add(progress.name)
            say("fetching", _line(progress))
        if progress.note:
            say("note", f"{progress.name}: {progress.note}")
        if sys.stderr.isatty() and not is_dumb():
            self._draw(progress)

    def _draw(self, progress: HubProgress) -> None:
        if not self._bars:
            console = Console(stderr=True)
            has_unicode = is_unicode(console.encoding)
            cut = Column(no_wrap=True, overflow="ellipsis" if has_unicode else "crop")
            self._bars = Progress(
                TextColumn("{task.description}", markup=False, table_column=cut),
                BarColumn(),
                DownloadColumn(table_column=cut),
                TransferSpeedColumn(table_column=cut),
                TimeRemainingColumn(table_column=cut),
                console=console,
                transient=True,
            )
            self._bars.start()
        name = terminal_safe(Path(progress.name).name)
        if progress.name not in self._tasks:
            self._tasks[progress.name] = self._bars.add_task(name, total=None)
        task = self._tasks[progress.name]
        if progress.checking != (progress.name in self._checking):
            self._checking ^= {progress.name}
            self._bars.reset(task, description=f"checking {name}" if progress.checking else name)
        self._bars.update(
            task, completed=progress.done_bytes, total=progress.total_bytes or None, refresh=False
        )


def _line(progress: HubProgress) -> str:
    """Return what is fetched: NAME (SIZE), and what of it is here."""
    about = [human_size(progress.total_bytes)] if progress.total_bytes else []
    if progress.n_kept:
        about.append(f"{progress.n_kept} of {progress.n_files} files are here already")
    return f"{progress.name} ({', '.join(about)})" if about else progress.name
