"""Ask llama.cpp in a process of its own, and make an answer of whatever happens to that."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import IO, Any

from specli.backend.probe import Device, Loaded
from specli.doctor.report import Llama


class Probe:
    """A process that asks llama.cpp about itself. Close it."""

    def __init__(self) -> None:
        """Start it, with the modules that this process would import and none of its folder's."""
        path = os.pathsep.join(entry or "." for entry in sys.path)
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self._error = ""
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "specli.backend.probe"],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                **pipes,
            )
        except OSError as error:
            self._error = f"Python cannot be started: {error}"

    def answer(self, limit_s: float) -> Llama:
        """Wait for it, at most so long."""
        if self._process is None:
            return Llama("broken", self._error, None)
        try:
            out, err = self._process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return Llama("hung", f"no answer in {limit_s:g} s", None)
        return _understood(self._process.returncode, out, err)

    def close(self) -> None:
        """End it, if it still runs; do not wait for one that the system cannot end."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
        for pipe in (self._process.stdout, self._process.stderr):
            _close(pipe)


def _close(pipe: IO[bytes] | None) -> None:
    if pipe:
        pipe.close()


def _understood(code: int, out: bytes, err: bytes) -> Llama:
    """Turn what the process left into an answer."""
    complaints = err.decode("utf-8", "replace").strip().splitlines()
    complaint = complaints[-1].strip() if complaints else ""
    if code != 0:
        end = _signal(code) if code < 0 or code > 255 else f"exit code {code}"
        text = f"{end}: {complaint}" if complaint else end
        return Llama("crashed" if code < 0 or code > 255 else "broken", text, None)
    try:
        said = json.loads(out)
        if "error" in said:
            return Llama("missing" if said["missing"] else "broken", said["error"], None)
        said["devices"] = tuple(Device(**device) for device in said["devices"])
        said["cxx_runtimes"] = tuple(said["cxx_runtimes"])
        return Llama("loaded", "", Loaded(**said))
    except (ValueError, TypeError, KeyError, RecursionError):
        return Llama("broken", f"no sense in its answer {out[:80]!r}", None)


def _signal(code: int) -> str:
    """Name what ended a process: a signal, or an exception of Windows."""
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"code {code & 0xFFFFFFFF:#x}"
