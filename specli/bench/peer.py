"""llama.cpp's own tool for speculative decoding: how it is run, and what it prints."""

import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from specli.errors import Interrupted, ModelError

_DONE = re.compile(r"(encoded|decoded)\s+(\d+) tokens in\s+([\d.]+) seconds")
_COUNT = re.compile(r"\b(n_drafted|n_accept)\s+=\s+(\d+)")
_VERSION = re.compile(r"^version: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """What can be tuned in it: most guesses of a round, and how sure the draft must be of each."""

    n_max: int
    p_min: float

    @property
    def group(self) -> str:
        """Return what kind of contestant it is."""
        return "peer"

    @property
    def name(self) -> str:
        """Return it as reports spell it."""
        return f"peer n_max={self.n_max} p_min={self.p_min:g}"


@dataclass(frozen=True, slots=True)
class PeerRun:
    """What it says of a run. seconds: from the end of the prompt to the last token."""

    prompt_n: int
    tokens: int
    seconds: float
    drafted: int
    accepted: int


def peer_command(
    tool: Path,
    target: Path,
    draft: Path,
    prompt: Path,
    settings: PeerSettings,
    *,
    temperature: float,
    seed: int,
    n_tokens: int,
    n_ctx: int,
    n_threads: int,
) -> list[str]:
    """Return the command line that continues a prompt file as specli does without filters.

    The file is read byte for byte (-bf): -f would drop its last line break. The tool ends after
    the round in which it has more than -n tokens.
    """
    return [
        str(tool),
        *("-m", str(target), "-md", str(draft), "-bf", str(prompt), "--no-escape"),
        *("-n", str(n_tokens - 1), "-c", str(n_ctx), "-t", str(n_threads)),
        *("--samplers", "temperature", "--temp", f"{temperature:g}", "--seed", str(seed)),
        *("--spec-type", "draft-simple"),
        *("--spec-draft-n-max", str(settings.n_max), "--spec-draft-p-min", str(settings.p_min)),
    ]


def run_peer(command: list[str]) -> PeerRun:
    """Run it. Raises ModelError where it fails, Interrupted where Ctrl-C ended it."""
    done = _call(command)
    if done.returncode == -signal.SIGINT or done.returncode == 130:
        raise Interrupted("interrupted")
    if done.returncode != 0:
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines() or ["no output"]
        raise ModelError(f"{command[0]} failed ({done.returncode}): {lines[-1]}")
    return parse_peer(done.stdout.decode("utf-8", "replace"))


def parse_peer(output: str) -> PeerRun:
    """Read what it prints. The answer comes first and may look like anything: the last word counts.

    Raises ModelError.
    """
    done = {match[1]: match for match in _DONE.finditer(output)}
    counts = {match[1]: int(match[2]) for match in _COUNT.finditer(output)}
    if done.keys() != {"encoded", "decoded"} or counts.keys() != {"n_drafted", "n_accept"}:
        raise ModelError("llama-speculative-simple did not say how long it took")
    decoded = done["decoded"]
    return PeerRun(
        prompt_n=int(done["encoded"][2]),
        tokens=int(decoded[2]),
        seconds=float(decoded[3]),
        drafted=counts["n_drafted"],
        accepted=counts["n_accept"],
    )


def peer_version(tool: Path) -> str:
    """Return its version and build, "" where it does not tell. Raises ModelError if it is none."""
    found = _VERSION.search(_call([str(tool), "--version"]).stdout.decode("utf-8", "replace"))
    return found[1] if found else ""


def _call(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Run a tool that may lie beside its own libraries."""
    folder = str(Path(command[0]).parent)
    paths = [folder, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    environment = os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(paths)}
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    except OSError as error:
        raise ModelError(f"{command[0]}: cannot be run: {error.strerror or error}") from None
