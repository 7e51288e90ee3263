"""A thread for work that Ctrl-C must end, but must not break in the middle."""

import os
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from specli.errors import SpecliError

T = TypeVar("T")

_LOOK_S = 0.1  # where the system wakes another thread for Ctrl-C than the one that waits


class Worker:
    """Does one thing after the other in a thread of its own, while the caller waits.

    Python raises KeyboardInterrupt in the main thread, at any place there, and one that is raised
    in a callback of a C library is lost. So the main thread does nothing but wait; the work
    asks `stopped` where it can end in good order.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._desk = _Desk()
        self._is_left = False
        self._pid = os.getpid()
        # The thread must not keep this object alive, nor a program from its end.
        arguments = self._tasks, self._desk
        self._thread = Thread(target=_work, args=arguments, name="specli", daemon=True)
        self._thread.start()

    def stopped(self) -> bool:
        """Say whether what is being done is to end."""
        task = self._desk.task
        return task is not None and task.is_stopped

    @property
    def is_here(self) -> bool:
        """Say whether the thread is one of this process: a fork takes none along."""
        return self._pid == os.getpid()

    def check_here(self) -> None:
        """Raise SpecliError in a process that was forked after this was made."""
        if not self.is_here:
            raise SpecliError(
                "this model was loaded by another process, a fork cannot use it",
                'load it in the process that uses it, or start that with "spawn" and load there',
            )

    def do(self, work: Callable[[], T], patience_s: float | None = None) -> T:
        """Return what the work returns. After Ctrl-C it is stopped, then KeyboardInterrupt raised.

        patience_s: how long to wait then, where nothing is lost if the work ends by itself later.
        Raises SpecliError where no thread could do it.
        """
        self.check_here()
        if not self._thread.is_alive():
            raise SpecliError("this model is closed", "load it again")
        task = _Task(work)
        try:
            self._tasks.put(task)
            while not task.is_done(_LOOK_S):
                pass
            result: T = task.future.result()
            return result
        except KeyboardInterrupt:
            task.await_end(patience_s)
            self._is_left = not task.future.done()
            raise

    def close(self) -> None:
        """End the thread; do not wait for what went on after all patience."""
        if not self.is_here:
            return
        self._tasks.put(None)
        if not self._is_left:
            self._thread.join()


class _Task:
    """One piece of work, its result, and whether it is to end before that."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.future: Future[Any] = Future()
        self.is_stopped = False

    def is_done(self, patience_s: float) -> bool:
        """Wait for its end; say whether that came."""
        try:
            self.future.exception(patience_s)
        except TimeoutError:
            return False
        return True

    def await_end(self, patience_s: float | None) -> None:
        """Stop it, and wait; who presses Ctrl-C again waits all the same."""
        while True:
            try:
                self.is_stopped = True
                if not self.future.cancel():
                    wait([self.future], patience_s)
                return
            except KeyboardInterrupt:
                continue


class _Desk:
    """What the thread is at."""

    task: _Task | None = None


def _work(tasks: "SimpleQueue[_Task | None]", desk: _Desk) -> None:
    while task := tasks.get():
        if task.future.set_running_or_notify_cancel():
            desk.task = task
            try:
                task.future.set_result(task.work())
            except BaseException as error:
                task.future.set_exception(error)
            desk.task = None
        del task  # what it refers to may go
