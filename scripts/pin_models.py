"""Fill the revisions, sizes and hashes of models.toml from the hub."""

import argparse
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import tomlkit
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

REGISTRY = Path(__file__).parent.parent / "models.toml"
# The base of all errors of the HTTP client that the hub's library uses, whichever that is.
HTTP_ERROR: type[Exception] = HfHubHTTPError.__bases__[0]


@dataclass(frozen=True, slots=True)
class Blob:
    """One file of a repository."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at its newest revision, its files by path."""

    revision: str
    files: Mapping[str, Blob]


class Hub(Protocol):
    """What answers for the hub."""

    def repository(self, repo: str) -> Repository | None:
        """Return a repository, None where there is none."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """models.toml as the hub knows it: its text, what changed, what was not found."""

    text: str
    changed: list[str]
    missing: list[str]


def pin(text: str, hub: Hub) -> Pinned:
    """Write what the hub says into a models.toml. An entry that lacks a file is left as it is."""
    document = tomlkit.parse(text)
    models: Any = document["models"]
    changed: list[str] = []
    missing: list[str] = []
    for alias, entry in models.items():
        found = hub.repository(entry["repo"])
        if found is None:
            missing.append(f"{alias}: {entry['repo']} is not on the hub")
            continue
        absent = [
            part
            for file in entry["files"].values()
            for part in parts(file["file"])
            if part not in found.files
        ]
        if absent:
            missing += [f"{alias}: {entry['repo']} has no {part}" for part in absent]
            continue
        changed += [f"{alias}: {change}" for change in _pin_entry(entry, found)]
    return Pinned(tomlkit.dumps(document), changed, missing)


def parts(file: str) -> list[str]:
    """Return all the files of a model of which one, or the first part, is named."""
    split = re.fullmatch(r"(.+)-00001-of-(\d{5})\.gguf", file)
    if not split:
        return [file]
    stem, count = split.groups()
    return [f"{stem}-{i:05}-of-{count}.gguf" for i in range(1, int(count) + 1)]


def _pin_entry(entry: Any, found: Repository) -> list[str]:
    """Pin one entry in place, and return what changed."""
    changed = []
    old = entry.get("revision", "")
    if old != found.revision:
        changed.append(f"revision {old or '?'} -> {found.revision}")
        if old:
            entry["revision"] = found.revision
        else:  # plain assignment would append it, and an empty line
            entry.value._insert_after("repo", "revision", found.revision)
    for quant, file in entry["files"].items():
        blobs = [found.files[part] for part in parts(file["file"])]
        pinned = {
            "file": file["file"],
            "size_bytes": sum(blob.size_bytes for blob in blobs),
            "sha256": blobs[0].sha256,
        }
        news = [
            f"{quant}: {key} {file.get(key, '?')} -> {value}"
            for key, value in pinned.items()
            if file.get(key) != value
        ]
        if news:
            changed += news
            entry["files"][quant] = _inline(pinned)
    return changed


def _inline(values: Mapping[str, str | int]) -> Any:
    """Return an inline table as models.toml spells it."""
    pairs = ", ".join(f"{key} = {tomlkit.item(value).as_string()}" for key, value in values.items())
    return tomlkit.value(f"{{ {pairs} }}")


class HuggingFace:
    """Answers for the hub itself, each repository asked once."""

    def __init__(self) -> None:
        self._api = HfApi()
        self._known: dict[str, Repository | None] = {}

    def repository(self, repo: str) -> Repository | None:
        if repo not in self._known:
            self._known[repo] = self._ask(repo)
        return self._known[repo]

    def _ask(self, repo: str) -> Repository | None:
        try:
            info = self._api.model_info(repo, files_metadata=True)
        except RepositoryNotFoundError:
            return None
        files = {
            file.rfilename: Blob(file.lfs.size, file.lfs.sha256)
            for file in info.siblings or []
            if file.lfs
        }
        return Repository(info.sha or "", files)


def main() -> int:
    """Pin models.toml, say what changed, and fail where a file is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say what would change")
    check = parser.parse_args().check
    try:
        pinned = pin(REGISTRY.read_text(encoding="utf-8"), HuggingFace())
    except (HTTP_ERROR, OSError) as error:
        print(f"error: the hub does not answer: {error}", file=sys.stderr)
        return 2
    for line in pinned.changed:
        print(line)
    for line in pinned.missing:
        print(f"error: {line}", file=sys.stderr)
    if not check:
        REGISTRY.write_text(pinned.text, encoding="utf-8")
    return 1 if pinned.missing else 0


if __name__ == "__main__":
    sys.exit(main())
