"""A worker ends in good order after Ctrl-C, and is waited for as long as was said."""

import signal
import threading

import pytest

from specli.errors import SpecliError
from specli.worker import Worker


def press_ctrl_c() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_work_is_done_in_one_thread_and_its_error_is_raised_here() -> None:
    worker = Worker()
    threads = {worker.do(threading.get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    with pytest.raises(ZeroDivisionError):
        worker.do(lambda: 1 / 0)
    worker.close()
    with pytest.raises(SpecliError, match="closed"):
        worker.do(lambda: None)


def test_ctrl_c_lets_work_come_to_its_end() -> None:
    worker, ended = Worker(), []

    def work() -> None:
        press_ctrl_c()
        while not worker.stopped():
            pass
        ended.append(True)

    for _ in range(20):
        with pytest.raises(KeyboardInterrupt):
            worker.do(work)
        assert ended.pop()
        assert worker.do(worker.stopped) is False
    worker.close()


def test_work_that_does_not_end_is_left() -> None:
    worker, end = Worker(), threading.Event()

    def work() -> None:
        press_ctrl_c()
        end.wait(20)

    with pytest.raises(KeyboardInterrupt):
        worker.do(work, patience_s=0.01)
    worker.close()
    assert not end.is_set()
    end.set()
