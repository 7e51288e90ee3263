"""A user's machine with a loopback hub, and specli there in processes of its own."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

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
KEPT = "nothing is kept, the next time starts from the beginning"


@dataclass(frozen=True)
class Result:
    """What a call left behind."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Call:
    """A specli that runs, and the files that it writes to."""

    pid: int
    out: Path
    err: Path
    answers: IO[str]

    def wait(self) -> Result:
        """Wait for its end."""
        code, out, err = int(self.answers.readline()), self.out.read_text(), self.err.read_text()
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
        calls, ours = os.pipe()
        answers, theirs = os.pipe()
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.zygote", str(calls), str(theirs)],
            env=self.environment | {"WARM_UP": "hf:org/big:q4_0"},
            pass_fds=[calls, theirs],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(calls)
        os.close(theirs)
        self._calls, self._answers = os.fdopen(ours, "w"), os.fdopen(answers)
        assert self._answers.readline() == "ready\n"

    def close(self) -> None:
        """End it."""
        self._calls.close()
        self._answers.close()
        self._zygote.wait(20)

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
    ) -> Call:
        """Start specli; environment: more of that. err: where stderr goes."""
        out_path, err_path = self.home / "out", self.home / "err"
        out_path.write_bytes(b"")
        err_path.write_bytes(b"")
        call = {
            "args": args,
            "environment": {**self.environment, **environment},
            "out": str(out_path),
            "err": err or str(err_path),
            "file_limit": file_limit,
        }
        print(json.dumps(call), file=self._calls, flush=True)
        return Call(int(self._answers.readline()), out_path, err_path, self._answers)

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
