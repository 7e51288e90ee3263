"""Changes to config.toml: checked before they are written, whole, and around what else is there."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from specli.config import Key, PairChoice, config_file, parse_config, read_text
from specli.errors import UsageError
from specli.files import changing, unwritable, write_whole


def save_pair(target: str, choice: PairChoice) -> Path:
    """Write down what guesses for a target; what is not chosen stays as it is.

    target: as pair_key names it. Returns the file. Raises UsageError where what stands there
    cannot be read, SpecliError where it cannot be written.
    """
    chosen = {"draft": choice.draft, "draft_tokens": choice.draft_tokens}
    return set_values(
        {
            ("pairs", target, key): int(value) if value.isdecimal() else value
            for key, value in chosen.items()
            if value is not None
        }
    )


def set_values(values: Mapping[Sequence[str], Any], keys: Mapping[str, Key] | None = None) -> Path:
    """Write values under their keys, each the names of tables and then a name. As save_pair.

    keys: as load_config has them.
    """
    import tomlkit

    def change(document: Any, new_table: Callable[[bool], Any]) -> None:
        for (*tables, name), value in values.items():
            table = document
            for i, step in enumerate(tables):
                table = table.setdefault(step, new_table(i < len(tables) - 1))
            table[name] = value

    return _change(change, keys, lambda is_super: tomlkit.table(is_super_table=is_super))


def unset_value(place: Sequence[str], keys: Mapping[str, Key] | None = None) -> Path:
    """Remove a key, and the tables that are empty then. Raises UsageError where there is none."""

    def change(document: Any, _: Callable[[bool], Any]) -> None:
        found = [document]
        for step in place:
            if not isinstance(found[-1], dict) or step not in found[-1]:
                raise UsageError(f"{config_file()}: {'.'.join(place)} is not set there")
            found.append(found[-1][step])
        for table, step in zip(reversed(found[:-1]), reversed(place), strict=True):
            del table[step]
            if table:
                break

    return _change(change, keys, lambda _: {})


def _change(
    change: Callable[[Any, Callable[[bool], Any]], None],
    keys: Mapping[str, Key] | None,
    new_table: Callable[[bool], Any],
) -> Path:
    """Change the file, if it is right before and after; comments and order stay."""
    path = config_file()
    try:
        with changing(path.parent):
            write_whole(path, _changed(change, keys, new_table).encode())
    except OSError as error:
        raise unwritable(path, error) from None
    return path


def _changed(
    change: Callable[[Any, Callable[[bool], Any]], None],
    keys: Mapping[str, Key] | None,
    new_table: Callable[[bool], Any],
) -> str:
    """Return what the file is to hold."""
    import tomlkit

    before, path = read_text(), config_file()
    parse_config(before, keys)  # what is wrong with it is said before anything is changed
    document, wanted = tomlkit.parse(before), tomllib.loads(before)
    change(wanted, lambda _: {})
    try:
        change(document, new_table)
        after = tomlkit.dumps(document)
        is_meant = tomllib.loads(after) == wanted
    except ValueError:  # tables written as {...} or with dots cannot always be added to
        is_meant = False
    if not is_meant:
        raise UsageError(
            f"{path}: cannot be changed around the way in which it is written",
            "specli config edit opens it; write its tables as [pairs.NAME]",
        )
    parse_config(after, keys)
    return after
