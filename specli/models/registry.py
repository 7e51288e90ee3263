"""The models that have a name: models.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path

from specli.errors import ModelError


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of the registry, as models.toml describes it."""

    alias: str
    repo: str
    file: str
    draft: str = "ngram"
    wheel: str = ""


Registry = Mapping[str, Entry]


def load_registry(path: Path | None = None) -> Registry:
    """Read a models.toml, that of the package by default. Raises ModelError with what is wrong."""
    path = path or _packaged()
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("models", {})
        return {alias: _entry(alias, table) for alias, table in tables.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"{path}: {error}") from None


def find(registry: Registry, alias: str) -> Entry:
    """Return the entry of an alias. Raises ModelError that names what comes near it."""
    if alias in registry:
        return registry[alias]
    near = get_close_matches(alias.lower(), registry, n=3, cutoff=0.5) or sorted(registry)
    raise ModelError(
        f"no model is called {alias!r}",
        f"did you mean {', '.join(near)}? A file is named by its path, a file on the hub as "
        "hf:org/repo/file.gguf",
    )


def _entry(alias: str, table: Mapping[str, object]) -> Entry:
    known = {field.name for field in fields(Entry)} - {"alias"}
    if unknown := set(table) - known:
        raise ValueError(f"{alias}: unknown key {min(unknown)!r}; known are {sorted(known)}")
    for key, value in table.items():
        if not isinstance(value, str):
            raise ValueError(f"{alias}: {key} is {value!r}, a string is wanted")
    if missing := {"repo", "file"} - set(table):
        raise ValueError(f"{alias}: {min(missing)} is missing")
    return Entry(alias, **table)  # type: ignore[arg-type]


def _packaged() -> Path:
    """Return models.toml: inside the installed package, or at the root of a source tree."""
    package = Path(__file__).parent.parent
    inside = package / "models.toml"
    return inside if inside.exists() else package.parent / "models.toml"
