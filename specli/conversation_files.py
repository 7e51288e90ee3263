"""Where conversations are kept: a file of JSON lines each, written as they go.

Each line is in the system's hands before the next thing happens, so that a crash or a kill loses
nothing but the last words of an answer. A line that was torn tells nothing and harms no other.
"""

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from specli.conversations import SCHEMA, Conversation, Turn, now, parse
from specli.errors import SpecliError, UsageError
from specli.files import check_regular, lock, open_regular

FLUSH_S = 0.2  # at most so much of an answer is lost
_BINARY = getattr(os, "O_BINARY", 0)


def conversations_folder() -> Path:
    """Return where they lie, whether it exists or not."""
    return user_data_path("specli") / "conversations"


def new_id() -> str:
    """Return a name for a conversation: short, and nobody else's."""
    return secrets.token_hex(4)


class Journal:
    """The file of a conversation that goes on. It comes into being with the first message.

    Where it cannot be written, on_failure is told once, and nothing more is kept.
    """

    def __init__(
        self,
        path: Path | None,
        head: Mapping[str, Any],
        file: int | None = None,
        *,
        torn: bool = False,
    ) -> None:
        """path: None to keep nothing. head: what the first line holds.

        file: open already, for more; torn: its last line has no end.
        """
        self.on_failure: Callable[[OSError], None] = lambda error: None
        self._path = path
        self._waiting = [] if file is not None else [_line("conversation", schema=SCHEMA, **head)]
        self._file = file
        self._torn = torn
        self._text = ""
        self._thought = False
        self._flushed = 0.0

    @property
    def kept(self) -> bool:
        """Whether there is a file, and all of the conversation is in it."""
        return self._file is not None

    def user(self, text: str) -> None:
        """Write down a message."""
        if self._path and self._file is None:
            self._open(self._path)
        self._write(_line("user", text=text, at=now()))

    def text(self, piece: str, thought: bool = False) -> None:
        """Write down a piece of the answer, at once or with the next."""
        if thought != self._thought:
            self._flush()
        self._text, self._thought = self._text + piece, thought
        if time.monotonic() - self._flushed >= FLUSH_S:
            self._flush()

    def done(self, reason: str, stats: dict[str, object] | None = None) -> None:
        """Write down that an answer ended, and let the disk have it."""
        self._flush()
        self._write(_line("done", reason=reason, stats=stats, at=now()))
        if self._file is not None:
            with suppress(OSError):
                os.fsync(self._file)

    def note(self, kind: str, **fields: Any) -> None:
        """Write down what else happened: system, models, dropped, retry, undo."""
        self._flush()
        self._write(_line(kind, **fields))

    def turns(self, turns: Sequence[Turn]) -> None:
        """Write down turns that were had elsewhere."""
        for turn in turns:
            self.user(turn.user)
            if turn.thought:
                self.text(turn.thought, thought=True)
            if turn.answer:
                self.text(turn.answer)
            if turn.reason:
                self.done(turn.reason)

    def close(self) -> None:
        """Write what is left, and close the file."""
        self._flush()
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._path = None

    def _flush(self) -> None:
        if self._text:
            more = {"thought": True} if self._thought else {}
            self._write(_line("text", text=self._text, **more))
            self._text = ""
        self._flushed = time.monotonic()

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL | _BINARY
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            self._fail(error)
            return
        lock(self._file)
        waiting, self._waiting = self._waiting, []
        for line in waiting:
            self._write(line)

    def _write(self, line: bytes) -> None:
        if self._file is None:
            if self._path and self._waiting:
                self._waiting.append(line)
            return
        line = b"\n" + line if self._torn else line
        self._torn = False
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if self._file is not None:
            if self._path and not os.fstat(self._file).st_size:  # a full disk: there is nothing
                with suppress(OSError):
                    self._path.unlink()
            os.close(self._file)
        self._file = self._path = None
        self.on_failure(error)


def reopen(path: Path) -> tuple[Conversation, Journal]:
    """Return what a file holds, and the file to write more. Raises SpecliError."""
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | _BINARY)
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        check_regular(file)
        if not lock(file):
            raise SpecliError(
                f"{path.stem}: is open in another chat",
                "leave that one first, or choose another: specli chats list",
            )
        with open(file, "rb", closefd=False) as opened:  # it is open
            data = opened.read()
        whole = parse(data, path.stem)
        return whole, Journal(path, {}, file, torn=not data.endswith(b"\n"))
    except OSError as error:
        os.close(file)
        raise _unreadable(path, error) from None
    except BaseException:
        os.close(file)
        raise


def saved() -> list[Path]:
    """Return the files of all conversations, the one changed last first."""
    found = []
    for path in conversations_folder().glob("*.jsonl"):
        with suppress(OSError):
            if path.is_file():  # a pipe or a device has no end
                found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found, reverse=True)]


def find(prefix: str) -> Path:
    """Return the file of the conversation whose name begins so. Raises UsageError."""
    found = [path for path in saved() if prefix and path.stem.startswith(prefix.lower())]
    exact = [path for path in found if path.stem == prefix.lower()]
    match exact or found:
        case [path]:
            return path
        case []:
            raise UsageError(
                f"no conversation is called {prefix or '(nothing)'}",
                "specli chats list shows those that there are",
            )
        case several:
            names = ", ".join(path.stem for path in several[:5])
            raise UsageError(f"{prefix}: {len(several)} conversations begin so: {names}")


def latest() -> Path | None:
    """Return the file of the conversation that changed last; passes over what is none."""
    for path in saved():
        with suppress(SpecliError):
            read(path)
            return path
    return None


def read(path: Path) -> Conversation:
    """Return what a file holds. Raises SpecliError."""
    try:
        with open_regular(path) as file:
            return parse(file.read(), path.stem)
    except OSError as error:
        raise _unreadable(path, error) from None


def remove(path: Path) -> None:
    """Remove a conversation that is not open. Raises SpecliError."""
    try:
        file = os.open(path, os.O_RDWR)
        try:
            if not lock(file):
                raise SpecliError(f"{path.stem}: is open in a chat", "leave that one first")
        finally:
            os.close(file)
        path.unlink()
    except OSError as error:
        raise SpecliError(f"{path}: cannot be removed: {error.strerror or error}") from None


def _unreadable(path: Path, error: OSError) -> SpecliError:
    return SpecliError(f"{path}: cannot be read: {error.strerror or error}")


def _line(kind: str, **fields: Any) -> bytes:
    text = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"
