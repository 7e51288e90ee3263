"""A small file for each pair and its settings, in the user's cache folder."""

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from specli.files import open_regular, write_whole

_VERSION = 2  # of what the files hold; others are forgotten


class Measurements:
    """A file in the user's cache folder. Nothing depends on it: what cannot be read is not there.

    identity: all that what is measured depends on, beside the machine.
    """

    def __init__(self, identity: Mapping[str, Any]) -> None:
        whole = {"version": _VERSION, "machine": machine(), **identity}
        digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
        self._path = user_cache_path("specli") / "measurements" / f"{digest[:16]}.json"
        self._identity = whole

    def load(self) -> dict[str, Any]:
        """Return what was saved; empty where nothing was, or nothing that can be used."""
        try:
            with open_regular(self._path) as file:
                held = json.load(file)
            return dict(held["learned"]) if held["identity"] == self._identity else {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return {}

    def save(self, learned: Mapping[str, Any]) -> None:
        """Replace what was saved, all at once; a folder that cannot be written is left alone."""
        text = json.dumps({"identity": self._identity, "learned": learned}, indent=1)
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, f"{text}\n".encode())


def file_identity(path: Path) -> list[Any]:
    """Return what tells one model file from another without reading it: place, size, time."""
    about = path.stat()
    return [str(path.resolve()), about.st_size, about.st_mtime_ns]


def machine() -> list[Any]:
    """Return what tells this machine from others."""
    return [platform.node(), platform.machine(), os.cpu_count()]
