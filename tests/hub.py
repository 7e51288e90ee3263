"""A loopback hub: a real HTTP server that the real huggingface_hub talks to through HF_ENDPOINT."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from urllib.parse import unquote, urlsplit

COMMIT = "c" * 40


@dataclass
class Faults:
    """What goes wrong, for all files or for those whose name ends as `only` does.

    head_status, get_status: answered instead. headers: sent along with that. cut: the share of the
    file after which the connection breaks, n_cuts times, and then whatever on_range says: 206 goes
    on, 200 starts over, others are answered. pause_s: the wait before each of the pieces of a body.
    hold: an event to wait for after the cut share instead of cutting, hold_head: before the answer
    about a file's metadata. wrong: other bytes come.
    redirect: the file comes from another origin. token: the one that is asked for. size: what the
    hub says it is. no_hash: the ETag is no sha256. not_a_hub: the headers of a hub are missing.
    """

    only: str = ""
    head_status: int = 0
    get_status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut: float = 0.0
    n_cuts: int = 1_000_000
    on_range: int = 206
    pause_s: float = 0.0
    hold: threading.Event | None = None
    hold_head: threading.Event | None = None
    wrong: bool = False
    redirect: bool = False
    token: str = ""
    size: int = 0
    no_hash: bool = False
    not_a_hub: bool = False


@dataclass(frozen=True)
class Request:
    """What the client asked for."""

    method: str
    path: str
    range: str
    authorization: str


class LoopbackHub(ThreadingHTTPServer):
    """Serves `files`, by org/repo/name, as the hub does, with `faults`; remembers `requests`."""

    daemon_threads = True
    request_queue_size = 16

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.faults = Faults()
        self.requests: list[Request] = []
        self.sent = threading.Event()  # some bytes of a file were sent

    @property
    def endpoint(self) -> str:
        """Return what HF_ENDPOINT has to be."""
        return f"http://127.0.0.1:{self.server_port}"

    def asked(self, method: str = "GET") -> list[str]:
        """Return the last parts of the paths of the files that were asked for."""
        return [r.path.rsplit("/", 1)[1] for r in self.requests if r.method == method]

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that have gone."""


@contextmanager
def loopback_hub() -> Iterator[LoopbackHub]:
    """Run a hub in a thread of its own."""
    with LoopbackHub() as hub:
        thread = threading.Thread(target=hub.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            if hub.faults.hold:
                hub.faults.hold.set()
            hub.shutdown()
            thread.join()


def content(n_bytes: int, seed: str = "") -> bytes:
    """Return bytes that differ from block to block."""
    return b"".join(
        hashlib.sha256(f"{seed}{i}".encode()).digest() for i in range(-(-n_bytes // 32))
    )[:n_bytes]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LoopbackHub

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing on stderr, which is the tests'."""

    def do_CONNECT(self) -> None:
        """Be a proxy that lets nobody through."""
        self._note()
        self._answer(407)

    def do_HEAD(self) -> None:
        """Answer with the metadata of a file."""
        self._note()
        name = self._name()
        faults = self._faults(name)
        if faults.hold_head:
            faults.hold_head.wait()
        if faults.head_status:
            self._answer(faults.head_status, faults.headers)
        elif self._refused(faults):
            pass
        elif name not in self.server.files:
            known = {name.rsplit("/", 1)[0] for name in self.server.files}
            code = "EntryNotFound" if name.rsplit("/", 1)[0] in known else "RepoNotFound"
            self._answer(404, {"X-Error-Code": code})
        else:
            self._answer(
                302 if faults.redirect else 200, self._metadata(name, faults), bodiless=True
            )

    def do_GET(self) -> None:
        """Answer with a file, or with the list of a repository's files."""
        self._note()
        if self.path.startswith("/api/"):
            self._list()
            return
        name = self._name()
        faults = self._faults(name)
        if faults.get_status:
            self._answer(faults.get_status, faults.headers)
        elif not self._refused(faults):
            self._send(name, faults)

    def _note(self) -> None:
        headers = self.headers.get("Range", ""), self.headers.get("Authorization", "")
        self.server.requests.append(Request(self.command, unquote(self.path), *headers))

    def _name(self) -> str:
        """Return org/repo/name of /org/repo/resolve/revision/name or /storage/org/repo/name."""
        path = unquote(urlsplit(self.path).path).lstrip("/")
        if path.startswith("storage/"):
            return path.removeprefix("storage/")
        repo, _, rest = path.partition("/resolve/")
        return f"{repo}/{rest.partition('/')[2]}"

    def _faults(self, name: str) -> Faults:
        faults = self.server.faults
        return faults if name.endswith(faults.only) else Faults()

    def _refused(self, faults: Faults) -> bool:
        if not faults.token or self.path.startswith("/storage/"):
            return False
        if self.headers.get("Authorization") == f"Bearer {faults.token}":
            return False
        self._answer(401, faults.headers)
        return True

    def _metadata(self, name: str, faults: Faults) -> dict[str, str]:
        data = self.server.files[name]
        size = str(faults.size or len(data))
        etag = "abc" if faults.no_hash else hashlib.sha256(data).hexdigest()
        if faults.not_a_hub:
            return {"Content-Length": size}
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        if faults.redirect:
            elsewhere = f"http://localhost:{self.server.server_port}/storage/{name}"
            linked = {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": size, "Location": elsewhere}
            return headers | linked | {"ETag": '"of the redirect"', "Content-Length": "0"}
        return headers | {"Content-Length": size}

    def _list(self) -> None:
        repo = self.path.removeprefix("/api/models/").partition("/tree/")[0]
        names = [n.removeprefix(f"{repo}/") for n in self.server.files if n.startswith(f"{repo}/")]
        if not names:
            self._answer(404, {"X-Error-Code": "RepoNotFound"})
            return
        entries = [{"type": "file", "path": name, "size": 1, "oid": "0"} for name in names]
        body = json.dumps(entries).encode()
        self._answer(200, {"Content-Type": "application/json"}, body)

    def _send(self, name: str, faults: Faults) -> None:
        whole = self.server.files[name]
        if faults.wrong:
            whole = whole[:-1] + bytes([whole[-1] ^ 1])
        start, stop, status = 0, len(whole), 200
        if match := self.headers.get("Range"):
            if faults.on_range not in (200, 206):
                self._answer(faults.on_range)
                return
            if faults.on_range == 206:
                first, _, last = match.removeprefix("bytes=").partition("-")
                start, status = int(first), 206
                stop = min(int(last) + 1, stop) if last else stop
        headers = {"Content-Length": str(stop - start)}
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(whole)}"
        end = stop
        if faults.cut and (faults.n_cuts > 0 or faults.hold):
            faults.n_cuts -= 1
            end = max(int(len(whole) * faults.cut), start)
        self._answer(status, headers, bodiless=True)
        piece = max(len(whole) // 10, 1)
        for at in range(start, end, piece):
            sleep(faults.pause_s)
            self.wfile.write(whole[at : min(at + piece, end)])
            self.server.sent.set()
        if end < stop:
            if faults.hold:
                faults.hold.wait()
            self.close_connection = True

    def _answer(
        self,
        status: int,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        bodiless: bool = False,
    ) -> None:
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        if not bodiless:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
