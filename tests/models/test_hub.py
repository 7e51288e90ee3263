"""The hub's client and cache in this process, against the loopback hub."""

import errno
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Thread, current_thread
from threading import enumerate as enumerate_threads
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants

from specli.errors import Interrupted, ModelError
from specli.models import hub
from specli.models.download import Progress, fetch
from specli.models.hub import Remote
from specli.models.hub_errors import explain
from specli.text import human_size
from tests.hub import Faults, LoopbackHub, content, loopback_hub

A, B = Remote("org/a", "a-Q4_0.gguf"), Remote("org/b", "b-Q4_0.gguf")
SIZE = 10 << 17


@pytest.fixture(scope="module")
def _server() -> Iterator[LoopbackHub]:
    with loopback_hub() as server:
        yield server


@pytest.fixture
def server(_server: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoopbackHub:
    """A hub with two models, which huggingface_hub in this process believes to be the hub."""
    _server.files = {A.name: content(SIZE, "a"), B.name: content(SIZE, "b")}
    _server.faults = Faults()
    _server.requests.clear()
    template = _server.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    for name, value in {
        "ENDPOINT": _server.endpoint,
        "HUGGINGFACE_CO_URL_TEMPLATE": template,
        "HF_HUB_CACHE": str(tmp_path / "hub"),
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_TELEMETRY": True,
    }.items():
        monkeypatch.setattr(constants, name, value)
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(min(seconds, 0.01)))
    return _server


def test_progress_goes_up_to_the_size_for_each_of_them(server: LoopbackHub) -> None:
    server.faults = Faults(pause_s=0.01)
    seen: dict[str, list[Progress]] = {A.name: [], B.name: []}
    paths = fetch([A, B], lambda progress: seen[progress.name].append(progress))
    assert [path.read_bytes() for path in paths] == list(server.files.values())
    for progress in seen.values():
        done = [p.done_bytes for p in progress if not p.checking]
        assert done == sorted(done)
        assert (done[0], done[-1]) == (0, SIZE)
        assert {(p.total_bytes, p.n_kept, p.n_files) for p in progress} == {(SIZE, 0, 1)}


def test_both_files_of_a_pair_come_side_by_side(server: LoopbackHub) -> None:
    both = []
    server.faults = Faults(pause_s=0.02)

    def on_progress(_: Progress) -> None:
        both.append({"a-Q4_0.gguf", "b-Q4_0.gguf"} == set(server.asked("GET")))

    started = time.monotonic()
    fetch([A, B], on_progress)
    assert any(both)
    assert time.monotonic() - started < 10


def test_one_that_fails_does_not_stop_the_other(server: LoopbackHub) -> None:
    server.faults = Faults(only="b-Q4_0.gguf", get_status=500)
    with pytest.raises(ModelError, match=r"^org/b/b-Q4_0.gguf: the hub is out of order \(500\)$"):
        fetch([A, B])
    assert hub.cached(A)
    assert not hub.cached(B)


def test_an_error_of_whoever_listens_ends_it(server: LoopbackHub) -> None:
    server.faults = Faults(pause_s=0.02)
    calls = []

    def on_progress(progress: Progress) -> None:
        calls.append(progress)
        if len(calls) > 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fetch([A], on_progress)
    assert not hub.cached(A)
    assert not list(hub.cache().rglob("*.incomplete"))


def test_ctrl_c_as_a_question_ends_it_and_its_thread(server: LoopbackHub) -> None:
    server.faults = Faults(pause_s=0.05)
    calls: list[Progress] = []
    with pytest.raises(Interrupted, match=r"^nothing is kept"):
        fetch([A], calls.append, lambda: nullcontext(lambda: len(calls) > 2))
    assert not [thread for thread in enumerate_threads() if "_run" in thread.name]
    assert not hub.cached(A)
    assert not list(hub.cache().rglob("*.incomplete"))


def test_metadata_are_the_hubs(server: LoopbackHub) -> None:
    sha256 = hashlib.sha256(server.files[A.name]).hexdigest()
    assert hub.metadata(A) == Remote(A.repo, A.file, "", SIZE, sha256)
    assert hub.files("org/a") == ["a-Q4_0.gguf"]
    with pytest.raises(ModelError, match="the hub has no repository org/none"):
        hub.files("org/none")


def test_a_disk_that_is_full(server: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", full)
    with pytest.raises(ModelError, match=r"a-Q4_0.gguf: the disk is full \(") as raised:
        fetch([A])
    assert raised.value.hint.endswith("nothing is kept, the next time starts from the beginning")
    assert not (hub.cache() / "models--org--a" / ".unchecked").exists()


def test_a_folder_that_may_not_be_written(server: LoopbackHub) -> None:
    hub.cache().parent.mkdir(exist_ok=True)
    hub.cache().write_bytes(b"a file")
    with pytest.raises(ModelError, match=r"cannot be written: .*hub") as raised:
        fetch([A])
    assert raised.value.hint.startswith("set HF_HOME to a folder that you may write to")


def test_a_download_whose_check_was_killed_is_checked_again(server: LoopbackHub) -> None:
    """The file is there whole, but wrong; only the mark says that nobody has looked."""
    server.faults = Faults(wrong=True)
    huggingface_hub.hf_hub_download(A.repo, A.file)
    mark = hub.cache() / "models--org--a" / ".unchecked" / A.file
    mark.parent.mkdir()
    mark.touch()
    assert not hub.cached(A)
    with pytest.raises(ModelError, match="what came is not what the hub has"):
        fetch([A])
    assert server.asked("GET") == [A.file]
    assert not mark.exists()
    server.faults = Faults()
    assert fetch([A])[0].read_bytes() == server.files[A.name]


def test_another_process_that_fetches_it_is_waited_for(server: LoopbackHub) -> None:
    from filelock import FileLock

    sha256 = hub.metadata(A).sha256
    blobs = hub.cache() / "models--org--a" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{sha256}.1234.incomplete").write_bytes(b"half")
    lock = hub.cache() / ".locks" / "models--org--a" / f"{sha256}.lock"
    lock.parent.mkdir(parents=True)
    other = FileLock(lock, thread_local=False)
    other.acquire()
    notes: list[str] = []

    def on_progress(progress: Progress) -> None:
        notes.append(progress.note)
        other.release()

    fetch([A], on_progress)
    assert notes[0] == "another process is fetching it; waiting for that one"


def test_what_is_noted_while_a_report_is_made_is_told(
    server: LoopbackHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The download comes to its end, with a note, before it is looked at again."""
    server.faults = Faults(no_hash=True)
    ours: list[Thread] = []
    looked_at, download = Event(), hub.download

    def waiting(*args: Any) -> None:
        ours.append(current_thread())
        looked_at.wait(5)
        download(*args)

    monkeypatch.setattr(hub, "download", waiting)
    notes: list[str] = []

    def on_progress(progress: Progress) -> None:
        notes.append(progress.note)
        if ours:
            looked_at.set()
            ours[0].join()

    fetch([A], on_progress)
    assert "the hub tells no sha256 of it, so it was not checked" in notes


def test_the_parts_of_a_split_model() -> None:
    whole = Remote("org/a", "d/m-00002-of-00003.gguf", "r", 30, "a" * 64)
    assert [part.file for part in hub.parts(whole)] == [
        f"d/m-0000{i}-of-00003.gguf" for i in (1, 2, 3)
    ]
    assert [part.sha256 for part in hub.parts(whole)] == ["", "a" * 64, ""]
    for file in (A.file, "m-00001-of-00000.gguf", "m-00004-of-00003.gguf"):
        assert hub.parts(Remote("org/a", file)) == [Remote("org/a", file)]


class UnsupportedProtocol(Exception):
    """Named as the HTTP client's own."""


class TransportError(Exception):
    """Named as the HTTP client's own."""


class ConnectError(TransportError):
    """Named as the HTTP client's own."""


class TimeoutException(TransportError):
    """Named as the HTTP client's own."""


class LocalProtocolError(TransportError):
    """Named as the HTTP client's own."""


class ProxyError(TransportError):
    """Named as the HTTP client's own."""


def make(kind: Callable[[str], Exception], text: str = "why") -> Exception:
    return kind(text)


@pytest.mark.parametrize(
    ("error", "at", "message", "hint"),
    [
        (make(UnsupportedProtocol), None, "'hub.example' is no address of a hub", "HF_ENDPOINT"),
        (make(ConnectError), None, "hub.example cannot be reached: why", "HF_ENDPOINT"),
        (make(ConnectError), 0.5, "the connection broke at 50 %: why", "start again"),
        (make(TimeoutException), None, "does not answer in time", "check the network"),
        (make(TimeoutException), 0.5, "at 50 %: nothing came any more", "check the network"),
        (make(LocalProtocolError, "hf_secret"), None, "the token has characters", "HF_TOKEN"),
        (make(ProxyError), None, "the proxy in between lets nothing through", "HTTPS_PROXY"),
        (make(ConnectError, "[SSL: CERTIFICATE_VERIFY_FAILED]"), None, "cert", "SSL_CERT_FILE"),
        (make(ValueError, "install the hf_xet package"), None, "is too large", "hf_xet"),
        (make(ValueError, "odd"), None, "cannot be fetched: odd", "SPECLI_DEBUG"),
    ],
)
def test_errors_are_told_apart(
    error: Exception, at: float | None, message: str, hint: str, tmp_path: Path
) -> None:
    explained = explain(error, "org/a/b.gguf", "hub.example", tmp_path, at)
    assert explained.message.startswith("org/a/b.gguf: ")
    assert message in explained.message
    assert hint in explained.hint
    assert "secret" not in explained.message


def test_a_proxy_is_named_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://me:secret@proxy.example:3128")
    error = explain(ConnectError("why"), "org/a/b.gguf", "https://hub.example", tmp_path)
    assert "cannot be reached through the proxy proxy.example:3128: why" in error.message
    assert "HTTPS_PROXY" in error.hint


def test_sizes_are_decimal() -> None:
    sizes = (0, 999, 1000, 42_520_395_584, 5 * 10**15)
    assert [human_size(size) for size in sizes] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "42.5 GB",
        "5000.0 TB",
    ]
