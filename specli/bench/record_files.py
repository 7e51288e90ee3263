"""Files of records: JSON Lines, written as runs are done, checked when they are read."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from specli.bench.records import (
    SCHEMA,
    Foresight,
    ModelFile,
    Passes,
    Record,
    Records,
    Rounds,
    Run,
    Setup,
)
from specli.errors import UsageError
from specli.files import read_most

_KINDS: dict[str, type[Setup | Record]] = {
    "setup": Setup,
    "run": Run,
    "passes": Passes,
    "foresight": Foresight,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class Recorder:
    """Appends records to a file, each for good before the next run begins."""

    def __init__(self, path: Path, setup: Setup) -> None:
        """A last line that was cut in a file that exists already is taken away."""
        self.path = path
        self._setup = setup
        self._told = False
        if path.exists():
            _mend(path)

    def write(self, record: Record) -> None:
        """Write one record down, before the first one the setup.

        Raises OSError, with none kept, nor a file without any.
        """
        lines = line_of(record) if self._told else line_of(self._setup) + line_of(record)
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(lines)
        except OSError:
            if self.path.exists():
                _mend(self.path)
                if not self.path.stat().st_size:
                    self.path.unlink()
            raise
        self._told = True


def line_of(record: Setup | Record) -> str:
    """Return a record as its line of JSON."""
    line = {"schema": SCHEMA, "kind": _NAMES[type(record)], **asdict(record)}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def load(path: Path) -> Records:
    """Return the records of a file; a last line that was cut does not count.

    Raises UsageError where it holds something else, or more than anybody records.
    """
    try:
        text = read_most(path).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    setups: list[Setup] = []
    records: list[Record] = []
    *whole, last = text.split("\n")
    is_cut = bool(last) and not _is_json(last)
    for number, line in enumerate(whole if is_cut else [*whole, last], 1):
        if line.strip():
            try:
                found = _parse(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
                raise UsageError(
                    f"{path}, line {number}: is no record of schema {SCHEMA}",
                    "files of specli bench and scripts/benchmark are wanted",
                ) from None
            if isinstance(found, Setup):
                setups.append(found)
            else:
                records.append(found)
    return Records(tuple(setups), tuple(records), is_cut)


def _parse(line: dict[str, Any]) -> Setup | Record:
    if line.pop("schema") != SCHEMA:
        raise ValueError("another schema")
    kind = _KINDS[line.pop("kind")]
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in line.items()
    }
    if kind is Setup:
        values["target"] = ModelFile(**values["target"])
        values["drafts"] = tuple(ModelFile(**draft) for draft in values["drafts"])
    elif kind is Passes:
        values["target_s"] = {int(n): seconds for n, seconds in values["target_s"].items()}
    elif kind is Run and "rounds" in values:
        values["rounds"] = Rounds(**{k: tuple(column) for k, column in values["rounds"].items()})
    record = kind(**values)
    _check(record)
    return record


def _check(record: Setup | Record) -> None:
    """Raise ValueError or TypeError where a record cannot be reckoned with."""
    _check_types(record)
    if isinstance(record, Run):
        sound = record.category.isprintable() and 0 < record.tokens < 2**63
        sound = sound and record.seconds > 0 and record.temperature >= 0
    elif isinstance(record, Passes):
        sound = all(seconds > 0 for seconds in record.target_s.values())
    else:
        sound = True
    if not sound:
        raise ValueError


def _check_types(record: Any) -> None:
    hints = get_type_hints(type(record))
    for one in fields(record):
        if not _is(getattr(record, one.name), hints[one.name]):
            raise TypeError(one.name)


def _is(value: Any, hint: Any) -> bool:
    """Say whether a value is what a field of a record wants; numbers are finite."""
    kind, wanted = get_origin(hint), get_args(hint)
    if kind is UnionType:
        return any(_is(value, one) for one in wanted)
    if kind is tuple:
        return isinstance(value, tuple) and all(_is(one, wanted[0]) for one in value)
    if kind is Mapping:
        return isinstance(value, dict) and all(_is(one, wanted[1]) for one in value.values())
    if is_dataclass(hint):
        _check_types(value)
    elif hint is float:
        return isinstance(value, float | int) and isfinite(value)
    return hint is Any or isinstance(value, hint)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _mend(path: Path) -> None:
    """End the last line of a file; where it was cut, take it away."""
    text = path.read_bytes()
    start = text.rfind(b"\n") + 1
    if start == len(text):
        return
    if _is_json(text[start:].decode("utf-8", "replace")):
        with path.open("ab") as file:
            file.write(b"\n")
    else:
        os.truncate(path, start)
