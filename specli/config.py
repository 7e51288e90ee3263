"""What the user has chosen for good: config.toml in the user's configuration folder.

A table for each target says what guesses for it:

    [pairs."llama-8b"]
    draft = "llama-1b"
    draft_tokens = "auto"
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from specli.errors import UsageError
from specli.files import unwritable, write_whole
from specli.settings import MAX_DRAFT_TOKENS


@dataclass(frozen=True, slots=True)
class PairChoice:
    """What guesses for a target, and how much. None: not chosen.

    draft_tokens: as --draft-tokens has it.
    """

    draft: str | None = None
    draft_tokens: str | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says. pairs: by target, as pair_key names it."""

    pairs: Mapping[str, PairChoice] = field(default_factory=dict)


def config_file() -> Path:
    """Return where it lies, whether it exists or not."""
    return user_config_path("specli") / "config.toml"


def load_config() -> Config:
    """Read the file; where there is none, nothing is chosen.

    Raises UsageError, with the key and what is wanted there. Keys that it does not know it leaves
    to those who do.
    """
    path = config_file()
    text = _read(path)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: is not valid TOML: {error}") from None
    pairs = found.get("pairs", {})
    if not isinstance(pairs, dict):
        raise UsageError(f"{path}: pairs is no table", _WANTED)
    return Config({name: _choice(path, name, values) for name, values in pairs.items()})


def save_pair(target: str, choice: PairChoice) -> Path:
    """Write down what guesses for a target, all at once, and leave the rest as it is.

    target: as pair_key names it. Returns the file. Raises UsageError where what stands there
    cannot be read, SpecliError where it cannot be written.
    """
    import tomlkit

    load_config()  # what is wrong with it is said before anything is changed
    path = config_file()
    document = tomlkit.parse(_read(path))
    pairs = document.setdefault("pairs", tomlkit.table(is_super_table=True))
    table = pairs.setdefault(target, tomlkit.table())
    for key, value in (("draft", choice.draft), ("draft_tokens", choice.draft_tokens)):
        if value is not None:
            table[key] = int(value) if value.isdecimal() else value
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, tomlkit.dumps(document).encode())
    except OSError as error:
        raise unwritable(path, error) from None
    return path


def pair_key(reference: str, is_path: bool) -> str:
    """Return how a target, or a draft, is called in the file, wherever one stands.

    is_path: whether the reference is the path of a file.
    """
    return str(Path(os.path.expanduser(reference)).absolute()) if is_path else reference  # noqa: PTH111


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None


def _choice(path: Path, name: str, values: Any) -> PairChoice:
    if not isinstance(values, dict):
        raise UsageError(f'{path}: pairs."{name}" is no table', _WANTED)
    draft, tokens = values.get("draft"), values.get("draft_tokens")
    if draft is not None and (not isinstance(draft, str) or not draft):
        raise UsageError(f'{path}: pairs."{name}".draft is no name', _WANTED)
    number = isinstance(tokens, int) and not isinstance(tokens, bool)
    if tokens not in (None, "auto") and not (number and 0 <= tokens <= MAX_DRAFT_TOKENS):
        raise UsageError(
            f'{path}: pairs."{name}".draft_tokens is {tokens}, "auto" or 0 to {MAX_DRAFT_TOKENS} is'
            " wanted"
        )
    return PairChoice(draft, None if tokens is None else str(tokens))


_WANTED = 'wanted: [pairs."TARGET"] with draft = "..." and draft_tokens = "auto" or a number'
