"""A user's machine with a loopback hub, and specli there in processes of its own."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.cli.forking import SPECLI, Call, Zygote
from tests.hub import COMMIT, Faults, LoopbackHub, content

REGISTRY = """
[models.big]
name = "Big"
repo = "org/big"
vocabulary = "v"
params_b = 1.0
license = "MIT"
context = 2048
draft = "little"
method = "draft"
files.q4_0 = {{ file = "big-Q4_0.gguf", sha256 = "{sha256}" }}

[models.little]
name = "Little"
repo = "org/little"
vocabulary = "v"
params_b = 0.1
license = "MIT"
context = 2048
files.q4_0 = {{ file = "little-Q4_0.gguf" }}
"""
BIG, LITTLE = content(10 << 17, "big"), content(10_000, "little")
LITTLE_NAME = "org/little/little-Q4_0.gguf"
FILE = "hf:org/big/big-Q4_0.gguf"
NAME = "org/big/big-Q4_0.gguf"
_PULL = """
import sys
from specli.cli.app import main
sys.argv = ["specli", "pull", "hf:org/big:q4_0"]
main()
"""
# The hub's client waits as often as ever, but not as long.
_IMPATIENT = f"""
import time
sleep = time.sleep
time.sleep = lambda seconds: sleep(min(float(seconds), 0.01))
{SPECLI}
"""
KEPT = "nothing is kept, the next time starts from the beginning"


@dataclass(frozen=True)
class Result:
    """What a call left behind."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Running:
    """A specli that runs, and the files that it writes to."""

    pid: int
    out: Path
    err: Path
    zygote: Zygote

    def wait(self) -> Result:
        """Wait for its end."""
        code, out, err = self.zygote.wait(self.pid), self.out.read_text(), self.err.read_text()
        assert "Traceback" not in err
        return Result(code, out, err)


class Machine:
    """A user's home, the hub that it talks to, and specli there."""

    def __init__(self, home: Path, hub: LoopbackHub) -> None:
        self.home, self.hub, self.cache = home, hub, home / "hf" / "hub"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "HF_HOME": str(home / "hf"),
            "HF_ENDPOINT": hub.endpoint,
            "HF_HUB_DOWNLOAD_TIMEOUT": "1",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",  # it asks the hub for the names of AI agents
        }
        config = home / "config" / "specli"
        config.mkdir(parents=True)
        sha256 = hashlib.sha256(BIG).hexdigest()
        (config / "models.toml").write_text(REGISTRY.format(sha256=sha256))
        self._zygote = Zygote(_PULL, self.environment)

    def close(self) -> None:
        """End it."""
        self._zygote.close()

    def reset(self) -> None:
        """Forget what there was."""
        shutil.rmtree(self.home / "hf", ignore_errors=True)
        self.hub.faults, self.hub.files = Faults(), {NAME: BIG, LITTLE_NAME: LITTLE}
        self.hub.requests.clear()
        self.hub.sent.clear()

    def start(
        self,
        *args: str,
        environment: Mapping[str, str] = MappingProxyType({}),
        file_limit: int = 0,
        err: str = "",
    ) -> Running:
        """Start specli; environment: more of that. err: where stderr goes."""
        out_path, err_path = self.home / "out", self.home / "err"
        out_path.write_bytes(b"")
        err_path.write_bytes(b"")
        streams = os.devnull, str(out_path), err or str(err_path)
        whole = {**self.environment, **environment}
        call = Call(_IMPATIENT, args, whole, streams, file_limit=file_limit)
        return Running(self._zygote.begin(call), out_path, err_path, self._zygote)

    def run(self, *args: str, **more: str) -> Result:
        """Run specli to its end."""
        return self.start(*args, environment=more).wait()

    def pull(self, *args: str) -> Result:
        """Run specli pull to its end."""
        return self.start("pull", *args).wait()

    def fresh(self, *args: str, **more: str) -> Result:
        """Run specli in a process that starts afresh, with all of its environment."""
        done = subprocess.run(
            [sys.executable, "-m", "specli", *args],
            env=self.environment | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert "Traceback" not in done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    def left(self) -> dict[str, bytes]:
        """Return every file of the cache but the locks and refs, by its path in there."""
        return {
            path.relative_to(self.cache).as_posix(): path.read_bytes()
            for path in self.cache.rglob("*")
            if path.is_file() and not {".locks", "refs"} & {*path.parts}
            if path.name != "CACHEDIR.TAG"
        }

    def snapshot(self, name: str) -> str:
        """Return where a file of the hub has to come to lie."""
        org, repo, file = name.split("/", 2)
        return str(self.cache / f"models--{org}--{repo}" / "snapshots" / COMMIT / file)


def blob(name: str, data: bytes) -> dict[str, bytes]:
    """Return what a finished download of a file leaves in the cache."""
    org, repo, file = name.split("/", 2)
    folder = f"models--{org}--{repo}"
    names = f"blobs/{hashlib.sha256(data).hexdigest()}", f"snapshots/{COMMIT}/{file}"
    return {f"{folder}/{name}": data for name in names}
