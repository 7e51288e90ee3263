"""What specli config changes: keys and values as they are typed, checked and written down."""

import json
import re
import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from specli.cli.options import ModelOptions, option_kinds
from specli.cli.sources import converted, flag_of, keys_of
from specli.config import (
    FLAG,
    OPENS_IT,
    PAIR_KEYS,
    TEXTS,
    Key,
    check_value,
    config_file,
    load_config,
    pair_key,
    pair_place,
    unknown_key,
)
from specli.config_edit import set_values, unset_value
from specli.errors import UsageError
from specli.models.registry import find, load_registry
from specli.models.store import is_path
from specli.settings import check_text


def change(key: str, words: Sequence[str]) -> str:
    """Write a setting; return what came to stand where. Raises UsageError, ModelError."""
    check_text("what is to be set", " ".join((key, *words)))
    place = place_of(key)
    if place[0] == "pairs" and len(place) < 3:
        raise UsageError(f"{key} is a table, one of its keys is wanted", _PAIR_EXAMPLE)
    name, keys = place[-1], keys_of(option_kinds())
    wanted = PAIR_KEYS[name] if place[0] == "pairs" else keys[name]
    value = _value(key, words, wanted)
    if name in ("target", "draft"):
        value = _model(value, name)
    elif name == "chat_template":
        value = str(Path(value).expanduser().absolute())
    if place[0] != "pairs":
        _check_range(name, value)
    path = set_values({place: value}, keys)
    return f"{_spelt(place)} to {json.dumps(value, ensure_ascii=False)} in {path}"


def remove(key: str) -> str:
    """Remove a setting; return what is gone from where. Raises UsageError where it is not set."""
    place = place_of(key)
    return f"{_spelt(place)} in {unset_value(place, keys_of(option_kinds()))}"


def check_file() -> None:
    """Raise UsageError where the file is wrong, which is kept as it is."""
    try:
        for name, value in load_config(keys_of(option_kinds())).values.items():
            _check_range(name, value, f"{config_file()}: {name}")
    except UsageError as error:
        hint = "specli config edit opens it again; until it is right, commands fail"
        more = "" if error.hint == OPENS_IT else error.hint
        raise UsageError(error.message, f"{more}; {hint}" if more else hint) from None


def place_of(key: str) -> tuple[str, ...]:
    """Return the tables and the name that a typed key means. Raises UsageError.

    One is an option. Else it is pairs.TARGET or pairs.TARGET.KEY: a target may be quoted, and needs
    not be, as no table is within it.
    """
    first, dot, rest = key.partition(".")
    if first == "pairs":
        return _pair_place(rest) if dot else ("pairs",)
    name = key.lstrip("-").replace("-", "_")
    if name not in option_kinds():
        raise unknown_key("specli config", key, [*option_kinds(), "pairs"])
    return (name,)


def _pair_place(rest: str) -> tuple[str, ...]:
    target: str
    name: str | None
    if quoted := re.fullmatch(r"""("(?:[^"\\]|\\.)*"|'[^']*')(?:\.(\w+))?""", rest):
        target, name = _toml(quoted[1]) or "", quoted[2]
    else:
        target, _, name = rest.rpartition(".")
        is_key = name in option_kinds() or get_close_matches(name, PAIR_KEYS)
        if not target or not is_key:
            target, name = rest, None  # a dot of the target's own name, if any
    if not target:
        raise UsageError("the name of a target is wanted", _PAIR_EXAMPLE)
    if name is not None and name not in PAIR_KEYS:
        raise unknown_key(f"specli config: {pair_place(target)}", name, PAIR_KEYS)
    place = ("pairs", pair_key(target, is_path(target)))
    return place if name is None else (*place, name)


def _value(key: str, words: Sequence[str], wanted: Key) -> Any:
    """Return what was typed as TOML has it: a value of its own if one is wanted, else a text."""
    if wanted is TEXTS and len(words) > 1:
        return list(words)
    if len(words) != 1:
        raise UsageError(
            f"{key} has one value, {len(words)} were given", "quote what belongs together"
        )
    value: Any = _WORDS.get(words[0].lower()) if wanted is FLAG else None
    if value is None:
        value = _toml(words[0])
    if value is None or (not wanted.accepts(value) and wanted.accepts(words[0])):
        value = words[0]
    check_value(key, value, wanted)
    return value


def _toml(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return None
    return found["value"] if len(found) == 1 else None


def _model(reference: str, name: str) -> str:
    """Return the reference as it means the same in every folder. Raises ModelError for no alias."""
    if name == "draft" and reference in ("ngram", "none"):
        return reference
    if is_path(reference):
        return pair_key(reference, True)
    if not reference.startswith(("hf:", "ollama:")):  # what those name, their servers know
        find(load_registry(), reference.partition(":")[0])
    return reference


def _check_range(name: str, value: Any, called: str = "") -> None:
    """Raise UsageError for a value of the right type that makes no sense."""
    given: Any = {name: converted(value, option_kinds()[name])}
    try:
        ModelOptions(**given).settings()
    except UsageError as error:
        said = error.message.removeprefix(flag_of(name))
        raise UsageError(f"{called or name}{said}", error.hint) from None


def _spelt(place: Sequence[str]) -> str:
    if len(place) == 1:
        return place[0]
    return pair_place(place[1], *place[2:])


_WORDS = {"on": True, "yes": True, "off": False, "no": False}  # as a variable may say it
_PAIR_EXAMPLE = "for example pairs.llama-8b.draft"
