"""Model files on this machine, found and removed without the hub's library, which is slow to load.

The layout of the Hugging Face cache is documented: models--ORG--NAME/snapshots/COMMIT/FILE, where
FILE is a link to blobs/HASH.
"""

import os
from importlib.util import find_spec
from pathlib import Path

from specli.errors import ModelError
from specli.models.hub import Remote, parts, unchecked_mark
from specli.models.registry import Entry


def hub_home() -> Path:
    """Return the folder of the Hugging Face hub, by its own library's rules.

    To that, a variable that is set to nothing names the folder one stands in.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache"))
    return _expand(os.environ.get("HF_HOME", str(cache / "huggingface")))


def hub_cache() -> Path:
    """Return where the hub's models are kept, by its own library's rules."""
    legacy = os.environ.get("HUGGINGFACE_HUB_CACHE", str(hub_home() / "hub"))
    return _expand(os.environ.get("HF_HUB_CACHE", legacy))


def find_cached(remote: Remote) -> Path | None:
    """Return the (first) file of a model in the hub's cache, if all of it is there and checked."""
    repo = hub_cache() / f"models--{remote.repo.replace('/', '--')}"
    files = parts(remote)
    if any(unchecked_mark(repo, part.file).exists() for part in files):
        return None
    snapshots = sorted(repo.glob(f"snapshots/{remote.revision or '*'}"), key=_age)
    for snapshot in snapshots:
        if all((snapshot / part.file).exists() for part in files):
            return snapshot / files[0].file
    return None


def find_in_wheel(entry: Entry, file: str) -> Path | None:
    """Return a file inside the entry's Python package, without importing the package."""
    spec = find_spec(entry.wheel) if entry.wheel else None
    folders = spec.submodule_search_locations or [] if spec else []
    return next((path for folder in folders if (path := Path(folder) / file).exists()), None)


def remove_cached(path: Path) -> int:
    """Remove a model's file or parts from the hub's cache; return the bytes that are free now.

    It goes from all snapshots, and its blob with it. Nothing outside the cache is touched. Raises
    ModelError for a file that is not there.
    """
    path = path.absolute()
    root = hub_cache().resolve()
    repo = next((folder for folder in path.parents if folder.parent.resolve() == root), None)
    if repo is None or path.parent.resolve() == path.parent.parent.resolve() or ".." in path.parts:
        raise ModelError(f"{path}: is not in the Hugging Face cache", "remove it yourself")
    try:
        return sum(_remove(repo, path.parent / part.file) for part in parts(Remote("", path.name)))
    except OSError as error:
        raise ModelError(f"{path}: cannot be removed: {error.strerror or error}") from None


def _remove(repo: Path, path: Path) -> int:
    blob = path.resolve()
    is_ours = blob.parent == (repo / "blobs").resolve() or blob == path
    size = blob.stat().st_size if is_ours and blob.exists() else 0
    links = [link for link in repo.glob("snapshots/**/*") if link.is_symlink()]
    for link in [path, *(link for link in links if link.resolve() == blob)]:
        link.unlink(missing_ok=True)
    if is_ours:
        blob.unlink(missing_ok=True)
    return size


def _age(path: Path) -> float:
    """Return a key that puts the newest first, and what cannot be read last."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


def _expand(path: str) -> Path:
    return Path(os.path.expanduser(os.path.expandvars(path)))  # noqa: PTH111  # ~nobody stays
