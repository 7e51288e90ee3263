"""Folders that specli and the hub use, the space in them, and the default model."""

import os
import shutil
import time
from pathlib import Path

from platformdirs import user_cache_path, user_config_path, user_data_path, user_state_path

from specli.doctor.report import DefaultModel, Folder, Storage
from specli.errors import ModelError
from specli.models.here import find_here
from specli.models.local import hub_cache
from specli.models.registry import load_registry

_SIZING_S = 0.2  # the longest that the size of a folder may take


def inspect_storage(default_target: str) -> Storage:
    """Describe the folders, and look for the default model in them."""
    folders = (
        _folder("models", hub_cache()),
        _folder("config", user_config_path("specli")),
        _folder("data", user_data_path("specli")),  # conversations, records of benchmarks
        _folder("state", user_state_path("specli")),
        _folder("cache", user_cache_path("specli")),
    )
    return Storage(folders, _default_model(default_target))


def _folder(name: str, path: Path) -> Folder:
    nearest = next((p for p in (path, *path.absolute().parents) if p.exists()), Path.cwd())
    try:
        free_bytes = shutil.disk_usage(nearest).free
    except OSError:
        free_bytes = 0
    writable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    size_bytes = _size(path) if path.is_dir() else 0
    return Folder(name, str(path), path.is_dir(), writable, size_bytes, free_bytes)


def _size(path: Path) -> int | None:
    """Return the size of all files in a folder, None where that takes too long."""
    end = time.monotonic() + _SIZING_S
    total = 0
    for folder, _, files in os.walk(path):
        for file in files:
            try:
                total += (Path(folder) / file).lstat().st_size
            except OSError:
                continue
        if time.monotonic() > end:
            return None
    return total


def _default_model(target: str) -> DefaultModel:
    """Look for the default quantization of an alias; nothing is imported or fetched for it."""
    try:
        entry = load_registry()[target]
    except ModelError as error:
        return DefaultModel(target, "", 0, "", error.message, error.hint)
    except KeyError:
        return DefaultModel(target, "", 0, "", f"no model is called {target!r}")
    file = entry.files[0]
    path = find_here(entry, file, others=False)
    return DefaultModel(target, str(path or ""), file.size_bytes, entry.wheel)
