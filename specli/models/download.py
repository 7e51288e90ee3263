"""Several models on their way from the hub at once: space, progress, hashes, Ctrl-C."""

import hashlib
import re
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TypeAlias

from specli.errors import Interrupted, ModelError
from specli.models import hub
from specli.models.hub import Remote
from specli.text import human_size

# Makes Ctrl-C an answer to a question for as long as its context lasts.
Listening: TypeAlias = Callable[[], AbstractContextManager[Callable[[], bool]]]

_REPORT_S = 0.1
_PATIENCE_S = 0.5  # how long Ctrl-C waits for downloads that may sit in a silent connection
_BLOCK_BYTES = 1 << 20
_WAITING = "another process is fetching it; waiting for that one"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a model is. total_bytes: of the files that have to come, 0 where that is not known.

    n_kept: how many of its n_files were here before. checking: its bytes are compared with the
    hub's hash. note: something that the user should know, said once.
    """

    name: str
    done_bytes: int
    total_bytes: int
    n_kept: int
    n_files: int
    checking: bool = False
    note: str = ""


def deaf() -> AbstractContextManager[Callable[[], bool]]:
    """Leave Ctrl-C to be an exception."""
    return nullcontext(lambda: False)


def fetch(
    remotes: Sequence[Remote],
    on_progress: Callable[[Progress], None] = lambda progress: None,
    listening: Listening = deaf,
) -> list[Path]:
    """Bring models into the cache, side by side; return the path of each one's (first) file.

    All metadata and the space on the disk are looked at before the first byte comes, every hash
    after the last. A file that does not come to its end is not kept: huggingface_hub resumes within
    one call only. The complete files of a split model are. on_progress is called from this thread,
    some times a second for each model. While files come, Ctrl-C is what `listening` makes of it: an
    exception may get lost in a library, and takes a thread for dead that it interrupts the join of.
    Raises ModelError, and Interrupted after Ctrl-C.
    """
    stop = Event()
    transfers = [_Transfer(remote, stop) for remote in remotes]
    _check_space([file for transfer in transfers for file in transfer.missing])
    for transfer in transfers:
        transfer.report(on_progress)
    with hub.warnings_to(lambda message, thread: _note(transfers, message, thread)):
        try:
            with listening() as stopped:
                for transfer in transfers:
                    transfer.thread.start()
                running = [transfer.thread for transfer in transfers]
                while running and not stopped():
                    running[0].join(_REPORT_S)
                    # before the report, so that it has all that those had to tell which are done
                    running = [t.thread for t in transfers if t.thread.is_alive()]
                    for transfer in transfers:
                        transfer.report(on_progress)
            if stopped():
                raise KeyboardInterrupt
        except BaseException as error:
            stop.set()
            for transfer in transfers:
                transfer.drop(_PATIENCE_S / len(transfers))
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(_kept(transfers)) from None
            raise
    for transfer in transfers:
        if transfer.error:
            raise transfer.error
    return [_path(remote) for remote in remotes]


class _Stopped(Exception):
    """Ends a download from within, after Ctrl-C."""


class _Transfer:
    """One model on its way: a thread fetches and checks its files one after another."""

    def __init__(self, remote: Remote, stop: Event) -> None:
        """Ask the hub about what is missing. Raises ModelError."""
        files = hub.parts(remote)
        self.name = remote.name
        self.missing = [hub.metadata(file) for file in files if not hub.cached_file(file)]
        self.n_files = len(files)
        self.n_kept = len(files) - len(self.missing)
        self.n_fetched = 0
        self._notes: deque[str] = deque()
        self._noted: set[str] = set()
        self.error: ModelError | None = None
        self.thread = Thread(target=self._run, daemon=True)
        self._done_bytes = 0
        self._checked_bytes: int | None = None
        self._stop = stop
        self._others: set[Remote] = set()  # files that another process is fetching
        for file in self.missing:
            self.note(note := _sweep(file))
            if note == _WAITING:
                self._others.add(file)

    @property
    def total_bytes(self) -> int:
        """Return how much has to come, 0 where one of the sizes is not known."""
        sizes = [file.size_bytes for file in self.missing]
        return sum(sizes) if all(sizes) else 0

    def report(self, on_progress: Callable[[Progress], None]) -> None:
        """Tell how far it is, as often as there are notes, at least once."""
        notes = [self._notes.popleft() for _ in range(len(self._notes))]
        for note in notes or [""]:
            checked = self._checked_bytes
            done = self._done_bytes if checked is None else checked
            counts = self.total_bytes, self.n_kept, self.n_files
            on_progress(Progress(self.name, done, *counts, checked is not None, note))

    def note(self, note: str) -> None:
        """Keep something to tell, unless it was told before or is nothing."""
        if note and note not in self._noted:
            self._noted.add(note)
            self._notes.append(note)

    def drop(self, patience_s: float) -> None:
        """Wait a little for the download to end, then take away what is left of it."""
        if self.thread.ident:
            self.thread.join(patience_s)
        for file in self.missing:
            if file not in self._others or self._done_bytes:
                hub.drop(file)

    def _run(self) -> None:
        """Fetch and check; leave what went wrong in `error`."""
        for file in self.missing:
            try:
                self._fetch(file)
            except _Stopped:
                return
            except ModelError as error:
                self.error = ModelError(error.message, f"{error.hint}; {_kept([self])}")
                self.error.__cause__ = error
                return
            self.n_fetched += 1

    def _fetch(self, file: Remote) -> None:
        before = self._done_bytes
        try:
            hub.download(file, self._advance, lambda path: self._check(file, path))
        except (_Stopped, ModelError):
            raise
        except Exception as error:
            came = self._done_bytes - before
            at = came / file.size_bytes if file.size_bytes and came else None
            with hub.explained(file.name, at):
                raise error
        self._done_bytes = before + file.size_bytes

    def _advance(self, n_bytes: int) -> None:
        self._done_bytes += n_bytes
        self._go_on()

    def _check(self, file: Remote, path: Path) -> None:
        """Compare a file with its hash; remove it where they differ. Raises ModelError."""
        self._go_on()
        if not file.sha256:
            self.note("the hub tells no sha256 of it, so it was not checked")
            return
        digest, self._checked_bytes = hashlib.sha256(), 0
        with path.open("rb") as content:
            while block := content.read(_BLOCK_BYTES):
                digest.update(block)
                self._checked_bytes += len(block)
                self._go_on()
        self._checked_bytes = None
        if digest.hexdigest() != file.sha256:
            hub.remove(path)
            raise ModelError(
                f"{file.name}: what came is not what the hub has: its sha256 is "
                f"{digest.hexdigest()[:12]}..., wanted is {file.sha256[:12]}...",
                "it was removed, start again",
            )

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise _Stopped


def _note(transfers: Sequence[_Transfer], message: str, thread: int) -> None:
    """Pass on those of the library's warnings that help a user."""
    note = ""
    if "Trying to resume download" in message:
        note = "the connection broke; going on from there"
    elif wait := re.search(r"Waiting (\d+)[\d.]*s before retry", message):
        note = f"too many requests; the hub asks to wait {wait[1]} s"
    for transfer in transfers:
        if transfer.thread.ident == thread:
            transfer.note(note)


def _kept(transfers: Sequence[_Transfer]) -> str:
    """Say what is here after a download that did not come to its end."""
    n_files = sum(transfer.n_files for transfer in transfers)
    n_kept = sum(transfer.n_kept + transfer.n_fetched for transfer in transfers)
    if not n_kept:
        return "nothing is kept, the next time starts from the beginning"
    return f"{n_kept} of {n_files} files are kept, of the others nothing"


def _check_space(missing: Sequence[Remote]) -> None:
    """Raise ModelError if the files that have to come do not fit on the disk."""
    needed, folder = sum(file.size_bytes for file in missing), hub.cache()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ModelError(
            f"{missing[0].name}{more}: {human_size(needed)} do not fit on the disk: {hub.cache()} "
            f"has {human_size(free)} free",
            "free some space, or set HF_HOME to a folder on a larger disk; nothing was fetched",
        )


def _sweep(file: Remote) -> str:
    """Remove what a killed download of a file left behind; return what to say about it."""
    try:
        n_bytes = hub.sweep(file)
    except TimeoutError:
        return _WAITING
    except OSError:
        return ""
    if not n_bytes:
        return ""
    return f"{human_size(n_bytes)} of a download that was killed are dropped, they cannot be used"


def _path(remote: Remote) -> Path:
    path = hub.cached(remote)
    if not path:
        raise ModelError(
            f"{remote.name}: is no longer in the Hugging Face cache",
            "another process has removed it; start again",
        )
    return path
