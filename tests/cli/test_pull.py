"""specli pull against a loopback hub, in processes of its own: what is said, and what is left."""

import hashlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from types import MappingProxyType
from typing import IO

import pytest

from tests.hub import COMMIT, Faults, LoopbackHub, content, loopback_hub

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


@pytest.fixture(scope="module")
def _machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with loopback_hub() as hub:
        hub.files = {NAME: BIG}
        with closing(Machine(tmp_path_factory.mktemp("home"), hub)) as machine:
            yield machine


@pytest.fixture
def machine(_machine: Machine) -> Machine:
    """A machine and a hub as if they were new."""
    _machine.reset()
    return _machine


def blob(name: str, data: bytes) -> dict[str, bytes]:
    """Return what a finished download of a file leaves in the cache."""
    org, repo, file = name.split("/", 2)
    folder = f"models--{org}--{repo}"
    names = f"blobs/{hashlib.sha256(data).hexdigest()}", f"snapshots/{COMMIT}/{file}"
    return {f"{folder}/{name}": data for name in names}


def test_a_pair_comes_whole_and_then_needs_no_network(machine: Machine) -> None:
    done = machine.pull("big")
    little = LITTLE_NAME
    assert done.code == 0
    assert done.out.splitlines() == [machine.snapshot(NAME), machine.snapshot(little)]
    assert done.err.splitlines() == [f"fetching: {NAME} (1.3 MB)", f"fetching: {little} (10.0 kB)"]
    assert machine.left() == blob(NAME, BIG) | blob(little, LITTLE)

    machine.hub.requests.clear()
    assert machine.pull("big", "--offline") == Result(0, done.out, "")
    assert machine.fresh("pull", "big", HF_HUB_OFFLINE="1") == Result(0, done.out, "")
    again = machine.pull("big", "--json")
    assert (again.code, again.err) == (0, "")
    assert [json.loads(line) for line in again.out.splitlines()] == [
        {"name": "big", "path": machine.snapshot(NAME), "fetched": False},
        {"name": "little", "path": machine.snapshot(little), "fetched": False},
    ]
    assert machine.hub.requests == []


@pytest.mark.parametrize("forbid", ["--offline", "HF_HUB_OFFLINE"])
def test_offline_nothing_is_asked_for(machine: Machine, forbid: str) -> None:
    if forbid == "--offline":
        done = machine.pull("big", "--offline")
    else:
        done = machine.fresh("pull", "big", HF_HUB_OFFLINE="1")
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == [
        f"error: {NAME}: is not in the Hugging Face cache",
        "hint: fetch it once with a network: specli pull big",
    ]
    assert machine.left() == {}
    assert machine.hub.requests == []


GATED = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to this model is restricted"}
FAULTS = {
    "401 of a missing or private repository": (
        Faults(head_status=401),
        {},
        "the hub has no repository org/big that can be seen from here",
        "check its name; if it is private, log in with: hf auth login (or set HF_TOKEN)",
    ),
    "401 of a bad token": (
        Faults(token="right", headers={"X-Error-Message": "Invalid credentials"}),
        {"HF_TOKEN": "hf_wrong"},
        "the hub refuses the token (401)",
        "HF_TOKEN, or the token that hf auth login keeps, is wrong or has expired: log in again, "
        "or unset it",
    ),
    "a token that is none": (
        Faults(),
        {"HF_TOKEN": "hf_wr\u00f6ng"},
        "the token has characters that no token has",
        "check HF_TOKEN, or log in again with: hf auth login",
    ),
    "401 gated": (
        Faults(head_status=401, headers=GATED),
        {},
        "the repository is gated (401)",
        "ask for access on {endpoint}/org/big, then log in with: hf auth login (or set HF_TOKEN)",
    ),
    "403 gated": (
        Faults(head_status=403, headers=GATED),
        {"HF_TOKEN": "hf_other"},
        "the repository is gated (403)",
        "ask for access on {endpoint}/org/big, then log in with: hf auth login (or set HF_TOKEN)",
    ),
    "403": (
        Faults(head_status=403),
        {},
        "the hub refuses access (403)",
        "the token may not read this repository; see {endpoint}/org/big, or log in with: "
        "hf auth login (or set HF_TOKEN)",
    ),
    "404": (
        Faults(head_status=404, headers={"X-Error-Code": "EntryNotFound"}),
        {},
        "the repository has no such file",
        "see {endpoint}/org/big/tree/main",
    ),
    "429": (
        Faults(head_status=429, headers={"Retry-After": "120"}),
        {},
        "the hub says that these are too many requests (429)",
        "wait 120 s and start again; more are allowed to who is logged in: log in with: "
        "hf auth login (or set HF_TOKEN)",
    ),
    "503": (
        Faults(head_status=503),
        {},
        "the hub is out of order (503)",
        "start again later",
    ),
    "no space": (
        Faults(size=10**16),
        {},
        "10000.0 TB do not fit on the disk: {cache} has ",
        "free some space, or set HF_HOME to a folder on a larger disk; nothing was fetched",
    ),
    "not a hub": (
        Faults(not_a_hub=True),
        {},
        "{endpoint} does not answer as a hub does",
        "check HF_ENDPOINT, and whether a proxy or a log-in page answers instead",
    ),
    "nobody there": (
        Faults(),
        {"HF_ENDPOINT": "http://127.0.0.1:9"},
        "http://127.0.0.1:9 cannot be reached: [Errno 111] Connection refused",
        "check the network, or HF_ENDPOINT",
    ),
    "a proxy that refuses": (
        Faults(),
        {"HF_ENDPOINT": "https://hub.invalid", "HTTPS_PROXY": "{proxy}"},
        "the proxy 127.0.0.1:{port} lets nothing through: 407 Proxy Authentication Required",
        "check HTTPS_PROXY and HTTP_PROXY, or name the host in NO_PROXY",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_goes_wrong_before_the_first_byte_is_a_line_and_a_hint(
    machine: Machine, case: str
) -> None:
    faults, more, what, hint = FAULTS[case]
    port = machine.hub.server_port
    proxy = f"http://me:secret@127.0.0.1:{port}"
    words = {"endpoint": machine.hub.endpoint, "port": port, "proxy": proxy}
    words["cache"] = machine.cache
    machine.hub.faults = replace(faults, headers=dict(faults.headers))
    more = {key: value.format(**words) for key, value in more.items()}
    done = (machine.fresh if "HF_ENDPOINT" in more else machine.run)("pull", FILE, **more)
    assert (done.code, done.out) == (3, "")
    error, said = done.err.splitlines()
    assert error.startswith(f"error: {NAME}: {what.format(**words)}")
    assert said == f"hint: {hint.format(**words)}"
    assert "secret" not in done.err
    assert "hf_wr" not in done.err
    assert machine.left() == {}
    assert machine.hub.asked("GET") == []


KEPT = "nothing is kept, the next time starts from the beginning"
BREAKS = {
    "wrong hash": (
        Faults(wrong=True),
        [],
        "what came is not what the hub has: its sha256 is ",
        f"it was removed, start again; {KEPT}",
    ),
    "cut at 60 % for good": (
        Faults(cut=0.6),
        ["the connection broke; going on from there"],
        "the connection broke at 60 %: peer closed connection without sending complete message",
        f"check the network, then start again; {KEPT}",
    ),
    "416 after a cut": (
        Faults(cut=0.6, on_range=416),
        ["the connection broke; going on from there"],
        "the hub cannot go on where the connection broke (416)",
        f"start again; {KEPT}",
    ),
    "429 for the file": (
        Faults(get_status=429, headers={"Retry-After": "2"}),
        ["too many requests; the hub asks to wait 3 s"],
        "the hub says that these are too many requests (429)",
        "wait 2 s and start again; more are allowed to who is logged in: log in with: "
        f"hf auth login (or set HF_TOKEN); {KEPT}",
    ),
    "403 for the file": (
        Faults(get_status=403),
        [],
        "the hub refuses access (403)",
        "the token may not read this repository; see {endpoint}/org/big, or log in with: "
        f"hf auth login (or set HF_TOKEN); {KEPT}",
    ),
    "shorter than said": (
        Faults(size=(10 << 17) + 1),
        [],
        "less came than the hub has",
        f"start again; {KEPT}",
    ),
}


@pytest.mark.parametrize("case", BREAKS)
def test_a_download_that_breaks_leaves_nothing_and_starts_again(
    machine: Machine, case: str
) -> None:
    faults, notes, what, hint = BREAKS[case]
    machine.hub.faults = replace(faults, headers=dict(faults.headers))
    done = machine.pull(FILE)
    assert (done.code, done.out) == (3, "")
    fetching, *said, error, hinted = done.err.splitlines()
    assert fetching.startswith(f"fetching: {NAME} (1.3 MB)")
    assert said == [f"note: {NAME}: {note}" for note in notes]
    assert error.startswith(f"error: {NAME}: {what}")
    assert hinted == f"hint: {hint.format(endpoint=machine.hub.endpoint)}"
    assert machine.left() == {}

    machine.hub.faults = Faults()
    machine.hub.requests.clear()
    again = machine.pull(FILE)
    assert (again.code, again.err) == (0, f"fetching: {NAME} (1.3 MB)\n")
    assert [r.range for r in machine.hub.requests if r.method == "GET"] == [""]
    assert machine.left() == blob(NAME, BIG)


@pytest.mark.parametrize("on_range", [206, 200])
def test_a_connection_that_breaks_once_goes_on_within_the_same_call(
    machine: Machine, on_range: int
) -> None:
    machine.hub.faults = Faults(cut=0.6, n_cuts=1, on_range=on_range)
    done = machine.pull(FILE)
    assert (done.code, done.out) == (0, machine.snapshot(NAME) + "\n")
    assert done.err.splitlines() == [
        f"fetching: {NAME} (1.3 MB)",
        f"note: {NAME}: the connection broke; going on from there",
    ]
    ranges = [r.range for r in machine.hub.requests if r.method == "GET"]
    assert ranges[0] == ""
    assert ranges[1].startswith("bytes=")
    assert machine.left() == blob(NAME, BIG)


def test_a_slow_link_is_waited_for(machine: Machine) -> None:
    machine.hub.faults = Faults(pause_s=0.06)
    done = machine.pull(FILE)
    assert (done.code, done.out) == (0, machine.snapshot(NAME) + "\n")
    assert done.err == f"fetching: {NAME} (1.3 MB)\n"
    assert machine.left() == blob(NAME, BIG)


def test_a_silent_link_is_given_up_after_a_while(machine: Machine) -> None:
    machine.hub.faults = Faults(cut=0.6, hold=Event(), on_range=500)
    done = machine.pull(FILE)
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == [
        f"fetching: {NAME} (1.3 MB)",
        f"note: {NAME}: the connection broke; going on from there",
        f"error: {NAME}: the hub is out of order (500)",
        f"hint: start again later; {KEPT}",
    ]
    assert machine.left() == {}


def test_a_redirect_is_followed_without_the_token(machine: Machine) -> None:
    machine.hub.faults = Faults(redirect=True, token="hf_mine")
    done = machine.run("pull", FILE, HF_TOKEN="hf_mine")
    assert (done.code, done.out) == (0, machine.snapshot(NAME) + "\n")
    assert done.err == f"fetching: {NAME} (1.3 MB)\n"
    assert machine.left() == blob(NAME, BIG)
    heads, gets = ([r for r in machine.hub.requests if r.method == m] for m in ("HEAD", "GET"))
    assert {r.authorization for r in heads} == {"Bearer hf_mine"}
    assert [(r.path, r.authorization) for r in gets] == [(f"/storage/{NAME}", "")]


def test_all_parts_of_a_split_file_come_and_complete_ones_are_kept(machine: Machine) -> None:
    names = [f"org/split/m-Q8_0-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    files = {name: content(50_000, name) for name in names}
    machine.hub.files |= files
    machine.hub.faults = Faults(only="2-of-00003.gguf", get_status=500)
    done = machine.pull("hf:org/split:q8_0")
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == [
        f"fetching: {names[0]} (150.0 kB)",
        f"error: {names[1]}: the hub is out of order (500)",
        "hint: start again later; 1 of 3 files are kept, of the others nothing",
    ]
    assert machine.left() == blob(names[0], files[names[0]])

    missing = machine.pull("hf:org/split:q8_0", "--offline")
    assert (missing.code, missing.out) == (3, "")
    assert missing.err.startswith("error: hf:org/split:q8_0: is not in the Hugging Face cache\n")

    machine.hub.faults = Faults()
    machine.hub.requests.clear()
    done = machine.pull("hf:org/split:q8_0")
    assert (done.code, done.out) == (0, machine.snapshot(names[0]) + "\n")
    assert done.err == f"fetching: {names[0]} (100.0 kB, 1 of 3 files are here already)\n"
    assert set(machine.hub.asked()) == {
        "main?recursive=true&expand=false",
        *(name.rsplit("/", 1)[1] for name in names[1:]),
    }
    assert machine.left() == {k: v for name in names for k, v in blob(name, files[name]).items()}
    assert machine.pull("hf:org/split:q8_0", "--offline").out == done.out


def test_the_registered_hash_is_asked_for_first(machine: Machine) -> None:
    machine.hub.files[NAME] = BIG + b"!"
    done = machine.pull("big")
    assert (done.code, done.out) == (3, "")
    error, hint = done.err.splitlines()
    assert error.startswith(f"error: {NAME}: the hub has another file than the registered one: ")
    assert hint == f"hint: the repository has changed; {FILE} takes the file as it is now"
    assert machine.left() == {}
    assert machine.hub.asked() == []


def test_a_hub_without_hashes_is_believed_and_that_is_said(machine: Machine) -> None:
    machine.hub.faults = Faults(no_hash=True)
    done = machine.pull(FILE)
    assert (done.code, done.out) == (0, machine.snapshot(NAME) + "\n")
    assert f"note: {NAME}: the hub tells no sha256 of it, so it was not checked" in done.err
    assert machine.left()[f"models--org--big/snapshots/{COMMIT}/big-Q4_0.gguf"] == BIG


def test_a_quantization_that_is_not_there(machine: Machine) -> None:
    for reference, what in (("hf:org/big:q5_k_m", "hf:org/big:q5_k_m"), ("big:q6_k", "big:q6_k")):
        done = machine.pull(reference)
        quant = reference.rpartition(":")[2]
        assert (done.code, done.out) == (3, "")
        assert done.err.splitlines() == [
            f"error: {what}: org/big has no file of the quantization {quant}",
            "hint: it has q4_0",
        ]
    assert machine.left() == {}


def test_ctrl_c_leaves_nothing_and_says_so(machine: Machine) -> None:
    for _ in range(3):  # on a machine that stands still, the client gives up before Ctrl-C comes
        machine.reset()
        machine.hub.faults = Faults(cut=0.6, hold=Event())
        call = machine.start("pull", FILE)
        assert machine.hub.sent.wait(20)
        time.sleep(0.2)
        os.kill(call.pid, signal.SIGINT)
        done = call.wait()
        assert machine.left() == {}
        if done.code != 3:
            break
    assert (done.code, done.out) == (130, ""), done.err
    assert done.err.splitlines() == [f"fetching: {NAME} (1.3 MB)", f"interrupted: {KEPT}"]


def test_a_killed_download_is_swept_and_does_not_look_finished(machine: Machine) -> None:
    machine.hub.faults = Faults(cut=0.6, hold=Event())
    call = machine.start("pull", FILE)
    assert machine.hub.sent.wait(20)
    os.kill(call.pid, signal.SIGKILL)
    assert call.wait().code == -signal.SIGKILL
    (left,) = [path for path in machine.left() if path.startswith("models--org--big/blobs")]
    assert left.endswith(".incomplete")
    assert not any("snapshots" in path for path in machine.left())
    (machine.cache / left).write_bytes(bytes(600_000))
    assert machine.pull("big", "--no-draft", "--offline").code == 3

    machine.hub.faults = Faults()
    done = machine.pull(FILE)
    assert (done.code, done.out) == (0, machine.snapshot(NAME) + "\n")
    assert done.err.splitlines() == [
        f"fetching: {NAME} (1.3 MB)",
        f"note: {NAME}: 600.0 kB of a download that was killed are dropped, they cannot be used",
    ]
    assert machine.left() == blob(NAME, BIG)


def test_a_disk_that_is_full_half_way(machine: Machine) -> None:
    done = machine.start("pull", FILE, file_limit=500_000).wait()
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == [
        f"fetching: {NAME} (1.3 MB)",
        f"error: {NAME}: the file is larger than may be written here ({machine.cache})",
        f"hint: free some space, or set HF_HOME to a folder on a larger disk; {KEPT}",
    ]
    assert machine.left() == {}


def test_a_terminal_sees_bars(machine: Machine) -> None:
    machine.hub.faults = Faults(pause_s=0.05)
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def read() -> None:
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:
                return
            seen.append(data)

    reader = Thread(target=read, daemon=True)
    reader.start()
    terminal = {"TERM": "xterm", "COLUMNS": "120"}
    done = machine.start(
        "models", "pull", "big", err=os.ttyname(theirs), environment=terminal
    ).wait()
    os.close(theirs)
    reader.join(5)
    assert (done.code, len(done.out.splitlines())) == (0, 2)
    text = b"".join(seen).decode()
    assert f"fetching: {NAME} (1.3 MB)" in text
    assert "big-Q4_0.gguf" in text
    assert "little-Q4_0.gguf" in text
    assert "MB/s" in text or "kB/s" in text
    assert "/1.3 MB" in text


def test_run_fetches_what_it_needs(machine: Machine) -> None:
    done = machine.fresh("run", "hello", "-t", "big")
    assert done.code == 3  # it is no model
    assert done.err.startswith(f"fetching: {NAME} (1.3 MB)\nfetching: org/little/")
    assert machine.left() == blob(NAME, BIG) | blob(LITTLE_NAME, LITTLE)
