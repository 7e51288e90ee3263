"""Files in the Hugging Face cache, found and removed without the hub's slow library.

The layout is documented by huggingface_hub: models--ORG--NAME/snapshots/COMMIT/FILE, where FILE is
a link to blobs/HASH.
"""

import os
from pathlib import Path

from specli.errors import ModelError


def hub_cache() -> Path:
    """Return the folder of the cache, by the environment variables that the hub's library obeys."""
    if folder := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(folder).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "huggingface" / "hub"


def find_cached(repo: str, file: str, cache: Path | None = None) -> Path | None:
    """Return the newest snapshot of a file, None where there is none."""
    snapshots = (cache or hub_cache()) / f"models--{repo.replace('/', '--')}" / "snapshots"
    found = [path for path in snapshots.glob("*") if (path / file).exists()]
    newest = max(found, key=lambda path: path.stat().st_mtime, default=None)
    return newest / file if newest else None


def remove_cached(path: Path, cache: Path | None = None) -> int:
    """Remove a file from the cache, with its blob where no other snapshot needs it.

    Returns the bytes that are free now. Raises ModelError for a file that is not in the cache.
    """
    root = (cache or hub_cache()).resolve()
    repo = path.parent
    while repo.parent.resolve() != root:
        if repo == repo.parent:
            raise ModelError(f"{path}: is not in the Hugging Face cache", "remove it yourself")
        repo = repo.parent
    blob = path.resolve()
    size = blob.stat().st_size
    path.unlink()
    others = (link for link in repo.glob("snapshots/**/*") if link.is_symlink())
    if blob.exists() and not any(link.resolve() == blob for link in others):
        blob.unlink()
        return size
    return 0 if blob.exists() else size
