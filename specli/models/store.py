"""Where a model's file lies: on a path, in a wheel, in a cache of this machine, or on the hub."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from specli.errors import ModelError
from specli.models import hub
from specli.models.caches import elsewhere, ollama_model
from specli.models.download import Listening, Progress, deaf, fetch
from specli.models.local import find_in_wheel
from specli.models.registry import Entry, Registry, find


@dataclass(frozen=True, slots=True)
class Located:
    """A model's file, under the name that the user knows it by.

    entry: its entry in the registry, if it was named by an alias.
    """

    name: str
    path: Path
    entry: Entry | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """A model that has to be fetched first."""

    name: str
    remote: hub.Remote
    entry: Entry | None = None


def locate(
    reference: str,
    registry: Registry,
    offline: bool = False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Located:
    """Find the file of a model, as look_up does, and fetch it where it is not here."""
    return fetch_missing([look_up(reference, registry, offline)], on_progress)[0]


def look_up(reference: str, registry: Registry, offline: bool = False) -> Located | Missing:
    """Say where a model is, or what has to be fetched.

    reference: an alias[:quant], a path, hf:org/repo/file.gguf, hf:org/repo:quant, or ollama:name.
    What is on this machine is used in place. Raises ModelError, also where something would have to
    be fetched but offline or HF_HUB_OFFLINE forbid it.
    """
    if reference.startswith("ollama:"):
        name = reference.removeprefix("ollama:")
        return Located(name, ollama_model(name))
    if reference.startswith("hf:"):
        remote = _remote(reference, offline)
        return _cached_or_missing(reference, Path(remote.file).stem, remote, None, offline)
    if is_path(reference):
        path = Path(os.path.expanduser(reference))  # leaves ~nobody alone  # noqa: PTH111
        return Located(path.stem, path)
    alias, _, quant = reference.partition(":")
    entry = find(registry, alias)
    if entry.is_local:
        return Located(reference, _local_file(entry, quant), entry)
    remote = _entry_remote(entry, quant, offline)
    path_here = find_in_wheel(entry, remote.file) or hub.cached(remote) or elsewhere(remote)
    if path_here:
        return Located(reference, path_here, entry)
    return _cached_or_missing(reference, reference, remote, entry, offline)


def fetch_missing(
    models: Sequence[Located | Missing],
    on_progress: Callable[[Progress], None] = lambda progress: None,
    listening: Listening = deaf,
) -> list[Located]:
    """Fetch those that are missing, side by side, and return them all. Raises ModelError."""
    remotes = list(dict.fromkeys(m.remote for m in models if isinstance(m, Missing)))
    came = fetch(remotes, on_progress, listening) if remotes else []
    paths = dict(zip(remotes, came, strict=True))
    return [
        Located(m.name, paths[m.remote], m.entry) if isinstance(m, Missing) else m for m in models
    ]


def _local_file(entry: Entry, quant: str) -> Path:
    path = Path(entry.quant(quant).file)
    if not path.is_file():
        raise ModelError(
            f"{entry.alias}: {path}: no such file",
            f"if it has moved: specli models rm {entry.alias} --yes && specli models add "
            f"{entry.alias} PATH",
        )
    return path


def _cached_or_missing(
    reference: str, name: str, remote: hub.Remote, entry: Entry | None, offline: bool
) -> Located | Missing:
    if path := hub.cached(remote):
        return Located(name, path, entry)
    if offline or hub.offline():
        raise ModelError(
            f"{remote.name}: is not in the Hugging Face cache",
            f"fetch it once with a network: specli pull {reference}",
        )
    return Missing(name, remote, entry)


def is_path(reference: str) -> bool:
    """Say whether a reference is the path of a file, and no name."""
    return not reference.startswith(("hf:", "ollama:")) and (
        os.sep in reference
        or "/" in reference
        or reference.lower().endswith(".gguf")
        or os.path.exists(reference)  # also where the name is too long to be one  # noqa: PTH110
    )


def _remote(reference: str, offline: bool) -> hub.Remote:
    """Read hf:org/repo/file.gguf or hf:org/repo:quant."""
    match = re.fullmatch(r"hf:([^/:]+/[^/:]+)(?:/(.+)|:([\w.-]+))", reference)
    if not match:
        raise ModelError(
            f"{reference}: names no file on the hub",
            "write it as hf:org/repo/file.gguf or hf:org/repo:quant",
        )
    repo, file, quant = match.groups()
    return hub.Remote(repo, file or _file_of_quant(reference, repo, quant, "", offline))


def _entry_remote(entry: Entry, quant: str, offline: bool) -> hub.Remote:
    """Return the file of a registered quantization, or of one that only the repository knows."""
    if quant and quant.lower() not in {file.quant for file in entry.files}:
        reference = f"{entry.alias}:{quant}"
        name = _file_of_quant(reference, entry.repo, quant, entry.revision, offline)
        return hub.Remote(entry.repo, name, entry.revision)
    file = entry.quant(quant)
    return hub.Remote(entry.repo, file.file, entry.revision, file.size_bytes, file.sha256)


def _file_of_quant(reference: str, repo: str, quant: str, revision: str, offline: bool) -> str:
    """Return the one file of a repository that has the quantization in its name."""
    names = hub.cached_files(repo, revision)
    for name in _with_quant(names, quant):
        if hub.cached(hub.Remote(repo, name, revision)):
            return name
    if offline or hub.offline():
        raise ModelError(
            f"{reference}: is not in the Hugging Face cache",
            f"fetch it once with a network: specli pull {reference}",
        )
    names = hub.files(repo, revision)
    match _with_quant(names, quant):
        case [name]:
            return name
        case []:
            known = dict.fromkeys(q for name in names if (q := quant_of(name)))
            raise ModelError(
                f"{reference}: {repo} has no file of the quantization {quant}",
                f"it has {', '.join(known)}" if known else "it has no GGUF files",
            )
        case several:
            raise ModelError(
                f"{reference}: {len(several)} files of {repo} have {quant} in their names",
                f"name one: {', '.join(f'hf:{repo}/{name}' for name in several)}",
            )


def _with_quant(names: Sequence[str], quant: str) -> list[str]:
    """Return the model files of a quantization: no projectors, of a split one the first part."""
    word = re.compile(rf"(?<![a-z0-9]){re.escape(quant.lower())}(?![a-z0-9_])")
    found = [name for name in names if word.search(Path(name).name.lower())]
    found = [name for name in found if not re.match(r"mmproj|imatrix", Path(name).name.lower())]
    return [name for name in found if not re.search(r"-(?!00001)\d{5}-of-\d{5}\.gguf$", name)]


def quant_of(name: str) -> str:
    """Return the quantization that a file has in its name, "" for none."""
    match = re.search(r"[-._](i?q\d\w*|bf16|f16|f32|mxfp4\w*)(?=[-.])", Path(name).name.lower())
    return match[1] if match else ""
