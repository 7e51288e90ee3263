"""Ask llama.cpp in a process of its own, and make an answer of whatever happens to that."""

import json
import subprocess

from specli.backend.probe import Device, Loaded
from specli.child import close_pipes, crashed, how_it_ended, kill, start
from specli.doctor.report import Llama


class Probe:
    """A process that asks llama.cpp about itself. Close it."""

    def __init__(self) -> None:
        """Start it."""
        self._error = ""
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = start("specli.backend.probe")
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
        """End it, if it still runs."""
        if self._process:
            kill(self._process)
            close_pipes(self._process)


def _understood(code: int, out: bytes, err: bytes) -> Llama:
    """Turn what the process left into an answer."""
    complaints = err.decode("utf-8", "replace").strip().splitlines()
    complaint = complaints[-1].strip() if complaints else ""
    if code != 0:
        ended = how_it_ended(code)
        text = f"{ended}: {complaint}" if complaint else ended
        return Llama("crashed" if crashed(code) else "broken", text, None)
    try:
        said = json.loads(out)
        if "error" in said:
            return Llama("missing" if said["missing"] else "broken", said["error"], None)
        said["devices"] = tuple(Device(**device) for device in said["devices"])
        said["cxx_runtimes"] = tuple(said["cxx_runtimes"])
        return Llama("loaded", "", Loaded(**said))
    except (ValueError, TypeError, KeyError, RecursionError):
        return Llama("broken", f"no sense in its answer {out[:80]!r}", None)
