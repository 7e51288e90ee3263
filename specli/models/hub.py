"""The Hugging Face hub and its cache: what lies there, and one file on its way from there.

The one module that knows huggingface_hub, which is imported only when it is asked for. Its
endpoint, token and folders come from HF_ENDPOINT, HF_TOKEN and HF_HOME.
"""

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from specli.errors import ModelError
from specli.models.hub_errors import explain

_BLOCK_BYTES = 1 << 17  # a block that breaks off is lost, and progress shows whole ones


@dataclass(frozen=True, slots=True)
class Remote:
    """A file on the hub; of a split model, its first part.

    revision "": the newest. size_bytes 0 and sha256 "": not known yet.
    """

    repo: str
    file: str
    revision: str = ""
    size_bytes: int = 0
    sha256: str = ""

    @property
    def name(self) -> str:
        """Return repository and file, as the hub writes them."""
        return f"{self.repo}/{self.file}"


def parts(remote: Remote) -> list[Remote]:
    """Return all the files of a model: itself, or the parts of a split one, the first one first."""
    match = re.fullmatch(r"(.*)-\d{5}-of-(\d{5})\.gguf", remote.file)
    if not match:
        return [remote]
    names = [f"{match[1]}-{i + 1:05}-of-{match[2]}.gguf" for i in range(int(match[2]))]
    if remote.file not in names:
        return [remote]
    sha256s = {remote.file: remote.sha256}
    return [
        replace(remote, file=name, size_bytes=0, sha256=sha256s.get(name, "")) for name in names
    ]


def offline() -> bool:
    """Say whether HF_HUB_OFFLINE forbids the network."""
    from huggingface_hub import constants

    return constants.HF_HUB_OFFLINE


def cache() -> Path:
    """Return the folder of the cache."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def cached(remote: Remote) -> Path | None:
    """Return the model's (first) file in the cache, if all of it is there and was checked."""
    paths = [cached_file(part) for part in parts(remote)]
    return paths[0] if all(paths) else None


def cached_file(file: Remote) -> Path | None:
    """Return one file in the cache, if it is there and was checked. Raises ModelError."""
    return None if _mark(file).exists() else _in_cache(file)


def cached_files(repo: str, revision: str = "") -> list[str]:
    """Return the names of the GGUF files of a repository that lie in the cache."""
    folder, commit = _repo_folder(repo), revision or "main"
    with suppress(OSError):
        commit = (folder / "refs" / commit).read_text()
    snapshot = folder / "snapshots" / commit
    found = sorted(snapshot.glob("**/*.gguf"))
    return [path.relative_to(snapshot).as_posix() for path in found if path.exists()]


def files(repo: str, revision: str = "") -> list[str]:
    """Return the names of the GGUF files of a repository on the hub. Raises ModelError."""
    from huggingface_hub import HfApi

    with explained(repo), warnings_to(lambda message, thread: None):
        names = HfApi().list_repo_files(repo, revision=revision or None)
        return sorted(name for name in names if name.lower().endswith(".gguf"))


def metadata(file: Remote) -> Remote:
    """Return one file with its size and hash as the hub tells them. Raises ModelError."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    with explained(file.name), warnings_to(lambda message, thread: None):
        url = hf_hub_url(file.repo, file.file, revision=file.revision or None)
        found = get_hf_file_metadata(url)
        if not found.commit_hash:
            raise ModelError(
                f"{file.name}: {_endpoint()} does not answer as a hub does",
                "check HF_ENDPOINT, and whether a proxy or a log-in page answers instead",
            )
    sha256 = found.etag if found.etag and re.fullmatch(r"[0-9a-f]{64}", found.etag) else ""
    if file.sha256 and sha256 and file.sha256 != sha256:
        raise ModelError(
            f"{file.name}: the hub has another file than the registered one: its sha256 is "
            f"{sha256[:12]}..., wanted is {file.sha256[:12]}...",
            f"the repository has changed; hf:{file.name} takes the file as it is now",
        )
    return replace(file, size_bytes=found.size or 0, sha256=sha256 or file.sha256)


def read_start(file: Remote, n_bytes: int) -> bytes:
    """Return the first bytes of a file on the hub. Raises ModelError."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils._headers import build_hf_headers
    from huggingface_hub.utils._http import get_session, hf_raise_for_status

    with explained(file.name), warnings_to(lambda message, thread: None):
        url = hf_hub_url(file.repo, file.file, revision=file.revision or None)
        headers = {**build_hf_headers(), "Range": f"bytes=0-{n_bytes - 1}"}
        with get_session().stream("GET", url, headers=headers, follow_redirects=True) as answer:
            hf_raise_for_status(answer)
            data = b""
            for block in answer.iter_bytes():
                data += block
                if len(data) >= n_bytes:  # a server that knows no ranges sends all of it
                    break
            return data[:n_bytes]


def download(file: Remote, on_bytes: Callable[[int], None], check: Callable[[Path], None]) -> None:
    """Bring one file into the cache, and check it there.

    on_bytes is told how many more have come (fewer than none where some come again). Until the
    check is done a mark says that it was not, should this process be killed. What on_bytes, check
    or the library raise comes through.
    """
    from huggingface_hub import constants, hf_hub_download

    constants.DOWNLOAD_CHUNK_SIZE = _BLOCK_BYTES  # instead of 10 MiB
    mark = _mark(file)
    mark.parent.mkdir(parents=True, exist_ok=True)
    ours = not mark.exists()  # else another process is at it, or was killed at it
    mark.touch()
    bar: Any = type("Bar", (_Bar,), {"on_bytes": staticmethod(on_bytes)})
    try:
        revision = file.revision or None
        check(Path(hf_hub_download(file.repo, file.file, revision=revision, tqdm_class=bar)))
    except BaseException as error:
        if (ours or isinstance(error, ModelError)) and not _in_cache(file):
            _unmark(mark)
        raise
    _unmark(mark)


def sweep(file: Remote) -> int:
    """Remove what killed downloads of a file have left; return how many bytes that were.

    Raises TimeoutError where another process is fetching it.
    """
    from huggingface_hub.utils._fixes import WeakFileLock

    left = _incomplete(file)
    if not left:
        return 0
    lock = cache() / ".locks" / _repo_folder(file.repo).name / f"{file.sha256}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with WeakFileLock(lock, timeout=0.1):
        n_bytes = sum(path.stat().st_size for path in left)
        for path in left:
            path.unlink(missing_ok=True)
    return n_bytes


def drop(file: Remote) -> None:
    """Take away what this process has of a file whose download will not end by itself."""
    xet = sys.modules.get("huggingface_hub.utils._xet")
    if xet and "hf_xet" in sys.modules:
        xet.abort_xet_session()
    for path in _incomplete(file):
        path.unlink(missing_ok=True)
    if not _in_cache(file):
        _unmark(_mark(file))


def remove(path: Path) -> None:
    """Remove a file of the cache together with what it links to."""
    while path.is_symlink():
        target = path.parent / path.readlink()
        path.unlink()
        path = target
    path.unlink(missing_ok=True)


@contextmanager
def explained(name: str, at: float | None = None) -> Iterator[None]:
    """Turn whatever the library raises into a ModelError; see hub_errors.explain."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        raise explain(error, name, _endpoint(), cache(), at) from error


@contextmanager
def warnings_to(listener: Callable[[str, int], None]) -> Iterator[None]:
    """Take the library's warnings off stderr, and tell them with the thread that they came from."""
    logger = logging.getLogger("huggingface_hub")
    before, logger.handlers = logger.handlers, [_Listener(listener)]
    try:
        yield
    finally:
        logger.handlers = before


class _Listener(logging.Handler):
    def __init__(self, listener: Callable[[str, int], None]) -> None:
        super().__init__(logging.WARNING)
        self._listener = listener

    def emit(self, record: logging.LogRecord) -> None:
        self._listener(record.getMessage(), record.thread or 0)


class _Bar:
    """What the library takes for a tqdm bar: it counts bytes and shows nothing."""

    on_bytes: ClassVar[Any]

    def __init__(self, *_: Any, total: int | None = None, initial: int = 0, **__: Any) -> None:
        self.total, self.n = total, initial

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: object) -> None: ...

    def update(self, n: int = 1) -> None:
        self.n += n
        self.on_bytes(n)

    def _ignore(self, *_: Any, **__: Any) -> None: ...

    update_transfer = set_postfix_str = set_transfer_postfix_str = refresh = close = _ignore


def _endpoint() -> str:
    from huggingface_hub import constants

    return constants.ENDPOINT


def _repo_folder(repo: str) -> Path:
    return cache() / f"models--{repo.replace('/', '--')}"


def _incomplete(file: Remote) -> list[Path]:
    """Return the unfinished downloads of a file, which have its hash in their random names."""
    blobs = _repo_folder(file.repo) / "blobs"
    return list(blobs.glob(f"{file.sha256}.*incomplete")) if file.sha256 else []


def _in_cache(file: Remote) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(file.repo, file.file, revision=file.revision or None)
    except ValueError as error:
        raise ModelError(f"{file.name}: {error}", "write it as hf:org/repo/file.gguf") from None
    return Path(found) if isinstance(found, str) else None


def unchecked_mark(repo_folder: Path, file: str) -> Path:
    """Return the mark of a file in a folder of the cache that was not checked yet."""
    return repo_folder / ".unchecked" / file.replace("/", "--")


def _mark(file: Remote) -> Path:
    return unchecked_mark(_repo_folder(file.repo), file.file)


def _unmark(mark: Path) -> None:
    mark.unlink(missing_ok=True)
    with suppress(OSError):
        mark.parent.rmdir()
