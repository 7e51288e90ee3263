"""Where a model's file lies: on a path, in a wheel, in the Hugging Face cache, or on the hub."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from specli.errors import ModelError
from specli.models.registry import Entry, Registry, find


@dataclass(frozen=True, slots=True)
class Located:
    """A model's file, under the name that the user knows it by.

    entry: its entry in the registry, if it was named by an alias.
    """

    name: str
    path: Path
    entry: Entry | None = None


def locate(
    reference: str,
    registry: Registry,
    offline: bool = False,
    on_download: Callable[[str], None] = lambda name: None,
) -> Located:
    """Find the file of a model named by an alias[:quant], a path, or hf:org/repo/file.gguf.

    What is on this machine is used in place; what is not is fetched from the hub, unless offline.
    on_download: told what is about to be fetched. Raises ModelError.
    """
    if reference.startswith("hf:"):
        repo, file = _split_hub_reference(reference)
        return Located(Path(file).stem, _fetch(repo, file, offline, on_download))
    if _is_path(reference):
        path = Path(reference).expanduser()
        return Located(path.stem, path)
    alias, _, quant = reference.partition(":")
    entry = find(registry, alias)
    file = entry.quant(quant).file
    path = _in_wheel(entry, file) or _fetch(entry.repo, file, offline, on_download)
    return Located(reference, path, entry)


def _is_path(reference: str) -> bool:
    return (
        os.sep in reference
        or "/" in reference
        or reference.lower().endswith(".gguf")
        or Path(reference).exists()
    )


def _split_hub_reference(reference: str) -> tuple[str, str]:
    parts = reference.removeprefix("hf:").split("/", 2)
    if len(parts) != 3 or not all(parts):
        raise ModelError(
            f"{reference}: names no file on the hub", "write it as hf:org/repo/file.gguf"
        )
    return f"{parts[0]}/{parts[1]}", parts[2]


def _in_wheel(entry: Entry, file: str) -> Path | None:
    """Return the entry's file inside an installed package, without importing the package."""
    spec = find_spec(entry.wheel) if entry.wheel else None
    folders = spec.submodule_search_locations or [] if spec else []
    return next((path for folder in folders if (path := Path(folder) / file).exists()), None)


def _fetch(repo: str, file: str, offline: bool, on_download: Callable[[str], None]) -> Path:
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    # The base of all errors of the HTTP client that the hub's library uses, whichever that is.
    http_error: type[Exception] = HfHubHTTPError.__bases__[0]
    name = f"{repo}/{file}"
    try:
        cached = try_to_load_from_cache(repo, file)
        if isinstance(cached, str):
            return Path(cached)
        if not offline:
            on_download(name)
        return Path(hf_hub_download(repo, file, local_files_only=offline))
    except HFValidationError as error:
        raise ModelError(f"{name}: {error}", "write it as hf:org/repo/file.gguf") from None
    except HfHubHTTPError as error:
        raise _hub_error(name, error.response.status_code if error.response else 0) from None
    except (OSError, ValueError, http_error) as error:
        if offline:
            raise ModelError(
                f"{name}: is not in the Hugging Face cache",
                f"fetch it once with a network: hf download {repo} {file}",
            ) from None
        raise ModelError(
            f"{name}: cannot be fetched: {str(error).splitlines()[0]}",
            "check the network, or name a file on this machine",
        ) from None


def _hub_error(name: str, status: int) -> ModelError:
    match status:
        case 401 | 403:
            return ModelError(
                f"{name}: the hub refuses access ({status})",
                "the repository may be gated, private or misspelt: ask for access on its page, "
                "then log in with: hf auth login",
            )
        case 404:
            return ModelError(
                f"{name}: is not on the hub", "check the names of repository and file"
            )
        case 0:
            return ModelError(
                f"{name}: is not in the Hugging Face cache, and the hub cannot be reached",
                "check the network, or name a file on this machine",
            )
        case _:
            return ModelError(f"{name}: the hub answered {status}", "try again later")
