"""Load libllama once, quietly, and safely beside any numpy."""

import ctypes
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from threading import local
from types import ModuleType
from typing import Any

import psutil

from specli.errors import ModelError

_LOG_LEVEL_ERROR = 4
_SPINS = "1000"
_listeners: list[Callable[[str], None]] = []


class _Errors(local):
    """What llama.cpp complained of to each thread: models are loaded by several."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=20)


_errors = _Errors()


@cache
def llama() -> ModuleType:
    """Return llama_cpp's low-level module, loaded at the first call.

    Its log goes to nobody but `last_errors`. Raises ModelError where it cannot be loaded.
    """
    if sys.platform == "linux":
        # Some numpy wheels bring a C++ runtime of their own. Loaded before libllama, it captures
        # libllama's std::regex symbols and crashes the vocabulary loader; the system's runtime,
        # made global first, wins whatever the order of the imports.
        with suppress(OSError):
            ctypes.CDLL("libstdc++.so.6", mode=ctypes.RTLD_GLOBAL)
    try:
        with _short_spins():
            from llama_cpp import llama_cpp as library

            library.llama_log_set(_log_callback(library), ctypes.c_void_p(0))
            with suppress(AttributeError):  # as where symbols of its libraries are not found by it
                library._lib.ggml_set_abort_callback(_give_up)
            library.llama_backend_init()
    except Exception as error:
        raise ModelError(
            f"llama-cpp-python cannot be loaded: {error}",
            "reinstall it: pip install --force-reinstall --no-deps llama-cpp-python==0.3.36",
        ) from error
    return library  # type: ignore[no-any-return]


@ctypes.CFUNCTYPE(None, ctypes.c_char_p)  # type: ignore[untyped-decorator]
def _give_up(why: bytes | None) -> None:
    """End the process, as llama.cpp is about to do with a hundred lines, some on stdout."""
    what = re.sub(r"^\S*[/\\]", "", (why or b"").decode("utf-8", "replace"))  # where it was built
    said = f"error: llama.cpp gave up, on a damaged model or for lack of memory: {what}\n"
    shown = "\n\x1b[?25h" if os.isatty(2) else ""  # the cursor, which a progress bar hides
    with suppress(OSError):
        os.write(2, (shown + said).encode())
    os._exit(ModelError.exit_code)


@contextmanager
def _short_spins() -> Iterator[None]:
    """Let OpenMP's threads sleep soon at a barrier where each core has one (docs/adr/0017).

    They spin there for milliseconds while the one that is waited for has lost its core to another
    program. libgomp reads the variable when it is loaded; who set it, or the policy, is obeyed.
    """
    has_spare = sys.platform != "linux" or len(os.sched_getaffinity(0)) > (
        psutil.cpu_count(logical=False) or 1
    )
    if has_spare or not os.environ.keys().isdisjoint(("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = _SPINS
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def version() -> str:
    """Return llama-cpp-python's version."""
    import llama_cpp

    return str(llama_cpp.__version__)


def system() -> str:
    """Return what llama.cpp was built with, and what it uses of this machine."""
    return (llama().llama_print_system_info() or b"").decode("utf-8", "replace")


@cache
def _log_callback(library: ModuleType) -> Any:
    def keep_errors(level: int, text: bytes, _: ctypes.c_void_p) -> None:
        for hear in _listeners:
            hear(text.decode("utf-8", "replace"))
        if level == _LOG_LEVEL_ERROR:
            _errors.lines.append(text.decode("utf-8", "replace").strip())

    return library.llama_log_callback(keep_errors)


@contextmanager
def listening(hear: Callable[[str], None]) -> Iterator[None]:
    """Tell somebody what llama.cpp logs, of every level, for as long as the context lasts."""
    _listeners.append(hear)
    try:
        yield
    finally:
        _listeners.remove(hear)


@contextmanager
def log_lines() -> Iterator[list[str]]:
    """Collect what llama.cpp logs, of every level, for as long as the context lasts."""
    lines: list[str] = []
    with listening(lines.append):
        yield lines


def last_errors() -> str:
    """Return, and forget, what it complained of to this thread, the most telling line only."""
    lines = [line for line in _errors.lines if line]
    _errors.lines.clear()
    return lines[0].split(": ", 1)[-1] if lines else "no reason given"
