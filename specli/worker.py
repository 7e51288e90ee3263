"""A thread for work that Ctrl-C must end, but must not break in the middle."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Event
from typing import TypeVar

T = TypeVar("T")


class Worker:
    """Does one thing after the other in a thread of its own, while the caller waits.

    Python raises KeyboardInterrupt in the main thread, at any place there, and one that is raised
    in a callback of a C library is lost. So the main thread does nothing but wait; the work
    asks `stopped` where it can end in good order.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="specli")
        self._stop = Event()

    def stopped(self) -> bool:
        """Say whether what is being done is to end."""
        return self._stop.is_set()

    def do(self, work: Callable[[], T], patience_s: float | None = None) -> T:
        """Return what the work returns. After Ctrl-C it is stopped, then KeyboardInterrupt raised.

        patience_s: how long to wait then, where nothing is lost if the work ends by itself later.
        """
        future: Future[T] | None = None
        self._stop.clear()
        try:
            future = self._pool.submit(work)
            return future.result()
        except KeyboardInterrupt:
            self._stop.set()
            while future and not future.done():
                with suppress(KeyboardInterrupt):
                    wait([future], patience_s)
                    if patience_s is not None:
                        break
            raise

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()
