"""The results of a batch: lines that are there for good as soon as they are complete."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from specli.cli.streams import say, write
from specli.errors import SpecliError, UsageError
from specli.files import check_place, lock, unwritable

_BINARY = getattr(os, "O_BINARY", 0)


@dataclass(slots=True)
class Results:
    """Where results go. file: None for stdout. n_done: that are there. n_failed: errors of them."""

    path: Path | None
    file: IO[bytes] | None
    n_done: int = 0
    n_failed: int = 0

    def add(self, result: dict[str, Any]) -> None:
        """Write a result, at once. Raises SpecliError."""
        if self.file is None:
            write(json.dumps(result, ensure_ascii=sys.stdout.isatty()) + "\n")
        else:
            line = json.dumps(result, ensure_ascii=False) + "\n"
            try:
                self.file.write(line.encode("utf-8", "replace"))
                self.file.flush()
            except OSError as error:
                assert self.path
                raise unwritable(self.path, error) from None
        self.n_done += 1
        self.n_failed += "error" in result


@contextmanager
def open_results(path: Path | None, resume: bool, ids: Sequence[Any]) -> Iterator[Results]:
    """Hold the file of the results open; with resume, go on after those that are there.

    ids: of all prompts, in order. Raises UsageError where results would be lost, or are those of
    other prompts.
    """
    if path is None:
        if resume:
            raise UsageError("--resume goes on in a file", "name it with --output FILE")
        yield Results(None, None)
        return
    check_place(path)
    there = _read(path)
    if there and not resume:
        raise UsageError(
            f"{path}: exists already", "--resume answers what is missing in it; or name another"
        )
    whole = there[: there.rfind(b"\n") + 1]
    done = [_result(path, number, line, ids) for number, line in enumerate(whole.splitlines(), 1)]
    if len(whole) < len(there):
        _check_torn(path, there[len(whole) :], ids[len(done) : len(done) + 1])
        say("hint", f"{path}: its last result is torn, and is made anew")
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | _BINARY, 0o666), "r+b")
    except OSError as error:
        raise unwritable(path, error) from None
    try:
        if not lock(file.fileno()) or os.fstat(file.fileno()).st_size != len(there):
            raise UsageError(f"{path}: another specli writes to it", "wait for it, then --resume")
        os.ftruncate(file.fileno(), len(whole))
        file.seek(len(whole))
        yield Results(path, file, len(done), sum("error" in result for result in done))
    finally:
        with suppress(OSError):  # what it could not write was said
            file.close()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise SpecliError(f"{path}: cannot be read: {error.strerror or error}") from None


def _check_torn(path: Path, torn: bytes, ids: Sequence[Any]) -> None:
    """Raise UsageError where the end of the file is no beginning of the next result."""
    begin = json.dumps({"id": ids[0]}, ensure_ascii=False)[:-1] if ids else ""
    expected = begin.encode("utf-8", "replace")
    if not expected or torn[: len(expected)] != expected[: len(torn)]:
        raise UsageError(
            f"{path}: its end is no result of this batch", "name another file for --output"
        )


def _result(path: Path, number: int, line: bytes, ids: Sequence[Any]) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        result = json.loads(line)
        if isinstance(result, dict) and number <= len(ids):
            is_one = any(isinstance(result.get(key), str) for key in ("text", "error"))
            if is_one and result.get("id") == ids[number - 1]:
                return result
    raise UsageError(
        f"{path}: line {number} is no result of this batch", "name another file for --output"
    )
