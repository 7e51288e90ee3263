"""A model in threads, forks and loops that are left: it waits, ends, or says why not."""

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from specli import (
    AnswerEnded,
    SpecliError,
    Speculator,
    Text,
    load,
)
from tests.api.conftest import text_of


def press_ctrl_c() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_it_works_in_threads(tiny: Path, model: Speculator) -> None:
    whole, found = text_of(model, "hello"), {}

    def answer(i: int) -> None:
        with load(tiny / "target.gguf", "none", temp=0, threads=1) as own:
            found[i] = text_of(own, "hello")

    threads = [threading.Thread(target=answer, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: whole, 1: whole}


def test_threads_that_share_a_model_wait_for_each_other(model: Speculator) -> None:
    wanted = {prompt: text_of(model, prompt) for prompt in ("hello", "and you", "again")}
    found: dict[str, str] = {}
    chat, n = model.chat(), threading.Barrier(2 * len(wanted))

    def answer(prompt: str) -> None:
        n.wait()
        found[prompt] = text_of(model, prompt)

    def talk() -> None:
        n.wait()
        chat.answer("hello", max_tokens=5)

    threads = [threading.Thread(target=answer, args=(prompt,)) for prompt in wanted]
    threads += [threading.Thread(target=talk) for _ in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == wanted
    assert [message.role for message in chat.messages] == ["user", "assistant"] * 3


def test_a_stream_is_ended_by_another_thread_not_broken(model: Speculator) -> None:
    whole, stream = text_of(model, "hello"), model.stream("something else")
    next(stream)
    other = threading.Thread(target=text_of, args=(model, "hello"))
    other.start()
    with pytest.raises(AnswerEnded):  # noqa: PT012
        for _ in stream:
            other.join(0.01)
    other.join()
    assert text_of(model, "hello") == whole


def test_a_turn_that_was_left_does_not_come_back_later(model: Speculator) -> None:
    chat = model.chat()
    left = chat.send("one", max_tokens=9)
    while not isinstance(next(left), Text):
        pass
    chat.answer("two", max_tokens=3)
    del left
    assert [m.content for m in chat.messages if m.role == "user"] == ["one", "two"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_is_told_at_once_that_it_has_no_model(tiny: Path) -> None:
    """In a process of its own: a fork of the tests' would end as they do."""
    script = f"""
import os, sys, warnings
from specli import *
warnings.simplefilter("ignore")
with load({str(tiny / "target.gguf")!r}, "none", threads=1) as model:
    stream = model.stream("hello")
    next(stream), next(stream)
    if (child := os.fork()) == 0:
        asks = [lambda: model.answer("x"), lambda: next(stream), lambda: model.chat().answer("x")]
        for ask in asks:
            try:
                ask()
            except SpecliError as error:
                print(error.message)
        model.close()
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), isinstance(next(stream), Text))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100
    )
    said = ["this model was loaded by another process, a fork cannot use it"] * 3
    assert done.stdout.splitlines() == [*said, "7 True"], done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("long", [False, True], ids=["answering", "reading"])
def test_ctrl_c_is_an_exception_that_breaks_nothing(model: Speculator, long: bool) -> None:
    whole = text_of(model, "hello")
    prompt = "many words " * 180 if long else "hello"
    for seconds in (0.001, 0.004, 0.01, 0.02):
        timer = threading.Timer(seconds, press_ctrl_c)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            timer.start()
            while True:
                for _ in model.stream(prompt, max_tokens=2 if long else None):
                    pass
                text_of(model, "x", 1)
        timer.join()
        assert text_of(model, "hello") == whole


def test_ctrl_c_ends_the_loading(tiny: Path) -> None:
    told = []

    def press(what: str, share: float) -> None:
        told.append(what)
        press_ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        load(tiny / "target.gguf", "none", on_progress=press)
    assert told[0] == "loading target"
    assert not [t for t in threading.enumerate() if t.name.startswith("specli") and t.is_alive()][
        1:
    ]


def test_progress_is_told(tiny: Path) -> None:
    told: list[tuple[str, float]] = []
    load(tiny / "target.gguf", "none", on_progress=lambda *args: told.append(args)).close()
    assert told[-1] == ("loading target", 1.0)
    assert len({int(100 * share) for _, share in told}) == len(told)


def test_what_progress_raises_ends_the_loading(
    tiny: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = []

    def fail(what: str, share: float) -> None:
        told.append(share)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        load(tiny / "target.gguf", "none", on_progress=fail)
    assert len(told) == 1
    assert capfd.readouterr() == ("", "")


def test_what_is_closed_says_so(tiny: Path) -> None:
    model = load(tiny / "target.gguf", "none", threads=1)
    stream, chat = model.stream("hello"), model.chat()
    next(stream)
    model.close()
    model.close()
    for ask in (lambda: next(stream), lambda: model.answer("x"), lambda: chat.answer("x")):
        with pytest.raises(SpecliError, match="closed"):
            ask()


def test_what_a_loop_raises_passes_and_closes(tiny: Path) -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), load(tiny / "target.gguf", "none", threads=1) as model:  # noqa: PT012
        for _ in model.stream("hello"):
            raise ZeroDivisionError
    assert threading.active_count() == before


def test_what_is_let_go_is_closed(tiny: Path) -> None:
    before = threading.active_count()
    for event in load(tiny / "target.gguf", "ngram").stream("hello", max_tokens=2):
        assert event.as_dict()
    gc.collect()
    assert threading.active_count() == before


def test_it_leaves_signals_logging_and_the_streams_alone(
    tiny: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    before = signal.getsignal(signal.SIGINT)
    with load(tiny / "target.gguf", "ngram") as model:
        assert signal.getsignal(signal.SIGINT) is before
        model.answer("hello", max_tokens=2)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
