"""What of the registry is on this machine, and what would fit into it. Loads no heavy library."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from specli.models.caches import elsewhere, other_programs
from specli.models.header import file_bytes
from specli.models.hub import Remote
from specli.models.local import find_cached, find_in_wheel
from specli.models.registry import Entry, File, Registry

Fit: TypeAlias = Literal["yes", "tight", "no", ""]

_EXTRA_BYTES = 1 << 30  # KV cache of some thousand tokens, buffers, the program itself
_BITS = {"q2": 3.2, "q3": 3.9, "q4": 4.85, "q5": 5.7, "q6": 6.6, "q8": 8.5, "iq": 3.5, "mx": 4.3}


@dataclass(frozen=True, slots=True)
class Here:
    """One quantization of a model. path: None where it is not on this machine.

    size_bytes: exact where it is here or registered, else reckoned from its parameters; 0 where
    these are not known. fits: "" where one cannot say.
    """

    entry: Entry
    file: File
    path: Path | None
    size_bytes: int
    fits: Fit


def look_around(registry: Registry, memory_bytes: int) -> list[Here]:
    """Return of each model what is here, or its default quantization where nothing is."""
    found = []
    others = other_programs()
    for entry in registry.values():
        paths = {file: find_here(entry, file, others) for file in entry.files}
        present = [file for file, path in paths.items() if path] or [entry.quant()]
        found += [describe(entry, file, paths[file], registry, memory_bytes) for file in present]
    return found


def find_here(entry: Entry, file: File, others: bool = True) -> Path | None:
    """Return where a quantization lies on this machine; others: also with other programs."""
    if entry.is_local:
        path = Path(file.file)
        return path if path.is_file() else None
    remote = Remote(entry.repo, file.file, entry.revision, file.size_bytes, file.sha256)
    found = find_in_wheel(entry, file.file) or find_cached(remote)
    return found or (elsewhere(remote) if others else None)


def describe(
    entry: Entry, file: File, path: Path | None, registry: Registry, memory_bytes: int
) -> Here:
    """Say how large a quantization is and whether it fits into memory beside its draft."""
    size = file_bytes(path) if path else reckoned_bytes(entry, file)
    beside = _draft_bytes(entry.draft, registry)
    total = size + _EXTRA_BYTES + (beside or 0)
    fits: Fit = "yes" if total < 0.75 * memory_bytes else "tight"
    if total >= 0.95 * memory_bytes:
        fits = "no"
    elif not size or beside is None:
        fits = ""
    return Here(entry, file, path, size, fits)


def _draft_bytes(draft: str, registry: Registry) -> int | None:
    """Return the size of what guesses, None where that is not known."""
    if draft in ("ngram", "none"):
        return 0
    if entry := registry.get(draft):
        file = entry.quant()
        path = find_here(entry, file, others=False) if entry.is_local else None
        return (file_bytes(path) if path else reckoned_bytes(entry, file)) or None
    path = Path(draft)
    return file_bytes(path) if path.is_file() else None


def reckoned_bytes(entry: Entry, file: File) -> int:
    """Return the size of a quantization: as registered, or from the parameters and bits."""
    bits = _BITS.get(file.quant[:2], 16.0)
    return file.size_bytes or round(entry.params_b * 1e9 * bits / 8)
