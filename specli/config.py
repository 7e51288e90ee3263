"""What the user has chosen for good: config.toml in the user's configuration folder.

Its top holds what every command begins with, under the names of the options; a table for each
target says what guesses for it:

    target = "llama-8b"
    temp = 0.7

    [pairs."llama-8b"]
    draft = "llama-1b"
    draft_tokens = "auto"
"""

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, time
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from specli.errors import UsageError
from specli.files import open_regular
from specli.settings import MAX_DRAFT_TOKENS


@dataclass(frozen=True, slots=True)
class Key:
    """What may stand under a key: in words, and as a question to a value that TOML gave."""

    wanted: str
    accepts: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class PairChoice:
    """What guesses for a target, and how much. None: not chosen.

    draft_tokens: as --draft-tokens has it.
    """

    draft: str | None = None
    draft_tokens: str | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says. values: its top. pairs: by target, as pair_key names it."""

    values: Mapping[str, Any] = field(default_factory=dict)
    pairs: Mapping[str, PairChoice] = field(default_factory=dict)


def config_file() -> Path:
    """Return where it lies, whether it exists or not."""
    return user_config_path("specli") / "config.toml"


def load_config(keys: Mapping[str, Key] | None = None) -> Config:
    """Read the file; where there is none, nothing is chosen.

    keys: all that may stand at the top; None to leave that to those who know them. Raises
    UsageError, with the key, what was found there and what is wanted.
    """
    return parse_config(read_text(), keys)


def parse_config(text: str, keys: Mapping[str, Key] | None = None) -> Config:
    """Read what stands in the file, or is to stand there. As load_config."""
    path = config_file()
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # too many digits, too deep: no TOML error
        raise UsageError(f"{path}: is not valid TOML: {error}", OPENS_IT) from None
    pairs = values.pop("pairs", {})
    if not isinstance(pairs, dict):
        raise UsageError(f"{path}: pairs is {shown(pairs)}, a table is wanted", _EXAMPLE)
    if keys is not None:
        _check_all(str(path), values, keys, [*keys, "pairs"], ": ")
    return Config(values, {name: _choice(path, name, table) for name, table in pairs.items()})


def check_value(where: str, value: Any, key: Key) -> None:
    """Raise UsageError for a value that cannot be meant."""
    if not key.accepts(value):
        raise UsageError(f"{where} is {shown(value)}, {key.wanted} is wanted", _SHOWN)


def _check_all(
    where: str, values: Mapping[str, Any], keys: Mapping[str, Key], known: Iterable[str], dot: str
) -> None:
    for name, value in values.items():
        if name not in keys:
            raise unknown_key(where, name, known)
        check_value(f"{where}{dot}{name}", value, keys[name])


def unknown_key(where: str, name: str, known: Iterable[str]) -> UsageError:
    """Return what is said of a key that nobody knows, with the one that was meant."""
    names, meant = list(known), name.replace("-", "_").lower()
    longer = [one for one in names if meant and (one.startswith(meant) or meant.startswith(one))]
    near = sorted(longer, key=len)[-1:] or get_close_matches(meant, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(names))}"
    return UsageError(f"{where}: {name} is no setting", hint)


def shown(value: Any) -> str:
    """Return a value as TOML writes it, as near as one line comes."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, date | time | float):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def pair_key(reference: str, is_path: bool) -> str:
    """Return how a target, or a draft, is called in the file, wherever one stands.

    is_path: whether the reference is the path of a file.
    """
    return str(Path(os.path.expanduser(reference)).absolute()) if is_path else reference  # noqa: PTH111


def read_text() -> str:
    """Return what stands in the file, nothing where there is none. Raises UsageError."""
    path = config_file()
    try:
        with open_regular(path) as file:
            return file.read().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: cannot be read: it is not UTF-8") from None


def choice_of(*names: str) -> Key:
    """Return the key of a value that has to be one of these names."""
    said = [f'"{name}"' for name in names]
    return Key(" or ".join([", ".join(said[:-1]), said[-1]]), lambda v: v in names)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and isfinite(value))


TEXT = Key("a text in quotes", lambda v: isinstance(v, str))
NAME = Key("a name in quotes", lambda v: isinstance(v, str) and v != "")
FLAG = Key("true or false", lambda v: isinstance(v, bool))
WHOLE = Key("a whole number", _is_whole)
NUMBER = Key("a number", _is_number)
TEXTS = Key(
    "a text in quotes, or a list of such,",
    lambda v: isinstance(v, str) or (isinstance(v, list) and all(isinstance(t, str) for t in v)),
)
DRAFT_TOKENS = Key(
    f'"auto" or 0 to {MAX_DRAFT_TOKENS}',
    lambda v: str(v).lower() == "auto" or (_is_whole(v) and 0 <= v <= MAX_DRAFT_TOKENS),
)
PAIR_KEYS = {"draft": NAME, "draft_tokens": DRAFT_TOKENS}
_SHOWN = "specli config shows each setting, its value and where it comes from"
OPENS_IT = "specli config edit opens it"
_EXAMPLE = 'for example [pairs."llama-8b"] with draft = "llama-1b" and draft_tokens = "auto"'


def pair_place(name: str, key: str = "") -> str:
    """Return how the table of a target, or a key of it, is called in what is said."""
    return f"pairs.{json.dumps(name, ensure_ascii=False)}{f'.{key}' if key else ''}"


def _choice(path: Path, name: str, table: Any) -> PairChoice:
    where = f"{path}: {pair_place(name)}"
    if not isinstance(table, dict):
        raise UsageError(f"{where} is {shown(table)}, a table is wanted", _EXAMPLE)
    _check_all(where, table, PAIR_KEYS, PAIR_KEYS, ".")
    tokens = table.get("draft_tokens")
    return PairChoice(table.get("draft"), None if tokens is None else str(tokens))
