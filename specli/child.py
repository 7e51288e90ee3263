"""Processes of our own modules, for work that may crash, hang, or cannot be stopped otherwise."""

import os
import signal
import subprocess
import sys
from contextlib import suppress


def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start `python -m module`, which imports what this process would, nothing of its folder.

    Its stdout and stderr are pipes. Raises OSError where Python cannot be started.
    """
    path = os.pathsep.join(entry or "." for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )


def keep_no_dump() -> None:
    """Let this process, whose crash is expected, leave no core dump."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def crashed(code: int) -> bool:
    """Say whether a process that ended with this code did not end itself."""
    return code < 0 or code > 255


def how_it_ended(code: int) -> str:
    """Name what ended a process: an exit code, a signal, or an exception of Windows."""
    if not crashed(code):
        return f"exit code {code}"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"code {code & 0xFFFFFFFF:#x}"


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process, if it still runs; do not wait for one that the system cannot end."""
    if process.poll() is None:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close what `start` has opened."""
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()
