"""Models that other programs keep on this machine, read where they lie."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from specli.errors import ModelError
from specli.models.hub import Remote, parts


def other_programs() -> bool:
    """Say whether any of these programs has been here at all."""
    homes = (
        Path.home() / ".lmstudio",
        Path.home() / ".cache" / "lm-studio",
        _llama_cpp(),
        _ollama(),
    )
    return any(home.exists() for home in homes)


def elsewhere(remote: Remote) -> Path | None:
    """Return the (first) file of a model in LM Studio's, llama.cpp's or Ollama's folders.

    They are told apart by name, and by size and hash where those are registered.
    """
    files = parts(remote)
    for folder in _lm_studio_folders(remote.repo):
        paths = [folder / Path(file.file).name for file in files]
        if all(map(Path.is_file, paths)) and _has_size(paths, remote.size_bytes):
            return paths[0]
    for prefix in (f"{remote.repo}/", ""):
        paths = [_llama_cpp() / f"{prefix}{file.file}".replace("/", "_") for file in files]
        if all(map(Path.is_file, paths)) and _has_size(paths, remote.size_bytes):
            return paths[0]
    blob = _ollama() / "blobs" / f"sha256-{remote.sha256}"
    return blob if remote.sha256 and len(files) == 1 and blob.is_file() else None


def ollama_model(name: str) -> Path:
    """Return the file of a model that Ollama calls name[:tag]. Raises ModelError."""
    path, _, tag = name.partition(":")
    folder = path if "/" in path else f"library/{path}"
    manifests = _ollama() / "manifests"
    for base in (manifests, *sorted(manifests.glob("*"))):
        manifest = base / folder / (tag or "latest")
        if name and manifest.is_file():
            return _ollama_blob(name, manifest)
    raise ModelError(
        f"ollama:{name}: Ollama has no such model in {_ollama()}",
        "ollama list shows the names; OLLAMA_MODELS says where they lie",
    )


def _ollama_blob(name: str, manifest: Path) -> Path:
    try:
        layers = json.loads(manifest.read_bytes())["layers"]
        digests = [layer["digest"] for layer in layers if layer["mediaType"].endswith(".model")]
        path = _ollama() / "blobs" / str(digests[0]).replace(":", "-")
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise ModelError(
            f"ollama:{name}: {manifest} names no model file", "fetch it again with ollama pull"
        ) from None
    if not path.is_file():
        raise ModelError(f"ollama:{name}: {path} is missing", "fetch it again with ollama pull")
    return path


def _lm_studio_folders(repo: str) -> Iterator[Path]:
    """Yield the folders publisher/repository, the right one first."""
    for home in (".lmstudio/models", ".cache/lm-studio/models"):
        models = Path.home() / home
        yield models / repo
        yield from sorted(models.glob("*/*"))


def _llama_cpp() -> Path:
    if folder := os.environ.get("LLAMA_CACHE"):
        return Path(folder)
    caches = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / caches) / "llama.cpp"


def _ollama() -> Path:
    return Path(os.environ.get("OLLAMA_MODELS") or Path.home() / ".ollama" / "models")


def _has_size(paths: list[Path], size_bytes: int) -> bool:
    return not size_bytes or sum(path.stat().st_size for path in paths) == size_bytes
