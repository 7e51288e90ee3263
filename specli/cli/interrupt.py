"""Ctrl-C as a question that long work asks, not as an exception out of nowhere."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Remembers that the user pressed Ctrl-C; call it to ask.

    llama.cpp calls back into Python, where an exception would be lost: so a flag. A second Ctrl-C
    while the first is still being obeyed ends the process at once.
    """

    def __init__(self) -> None:
        self._asked = False

    def __call__(self) -> bool:
        """Say whether Ctrl-C was pressed since the listening began."""
        return self._asked

    @contextmanager
    def listening(self) -> Iterator[Callable[[], bool]]:
        """Catch Ctrl-C for as long as the context lasts, which is given this question."""
        self._asked = False
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, before)

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        if self._asked:
            os._exit(130)
        self._asked = True
