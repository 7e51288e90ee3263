"""Ctrl-C as a question that long work asks, not as an exception out of nowhere."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from specli.cli.keyboard import quiet_keys, show_keys, silence

# What ends a process from outside.
_ENDING = "SIGTERM", "SIGHUP", "SIGQUIT"


def _nothing() -> None:
    return


@contextmanager
def tidied(tidy: Callable[[], None]) -> Iterator[None]:
    """Tidy up before a signal ends the process, for as long as the context lasts."""

    def end(number: int, frame: FrameType | None) -> None:
        try:
            tidy()
        finally:
            if callable(then := before[number]):
                then(number, frame)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    ending = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    heeded = [number for number in ending if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Interrupt:
    """Remembers that the user pressed Ctrl-C; call it to ask.

    llama.cpp calls back into Python, where an exception would be lost: so a flag. A second Ctrl-C
    while the first is still being obeyed ends the process at once, or a later one.
    """

    def __init__(
        self, tidy: Callable[[], None] = _nothing, resumed: Callable[[], None] = _nothing
    ) -> None:
        """tidy: called when a listening ends, however it ends. resumed: after Ctrl-Z and fg."""
        self._n_asked = 0
        self._most = 2
        self._tidy = tidy
        self._resumed = resumed

    def __call__(self) -> bool:
        """Say whether Ctrl-C was pressed since the listening began."""
        return self._n_asked > 0

    @contextmanager
    def listening(self, most: int = 2) -> Iterator[Callable[[], bool]]:
        """Catch Ctrl-C for as long as the context lasts, which is given this question.

        most: so many end the process. Keys typed meanwhile are not shown.
        """
        self._n_asked, self._most = 0, most
        wanted = {signal.SIGINT: self._handle}
        if hasattr(signal, "SIGCONT"):
            wanted[signal.SIGCONT] = self._resume
        before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
        try:
            with quiet_keys(), tidied(self._leave):
                yield self
        finally:
            self._tidy()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        self._n_asked += 1
        if self._n_asked >= self._most:
            try:
                self._leave()
            finally:
                os._exit(130)

    def _leave(self) -> None:
        show_keys()
        self._tidy()

    def _resume(self, _signal: int, _frame: FrameType | None) -> None:
        silence()  # the shell has set its own terminal modes meanwhile
        self._resumed()
