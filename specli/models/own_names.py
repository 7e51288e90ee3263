"""The user's own models.toml: names are added and removed, whole, one change at a time."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from specli.errors import ModelError, UsageError
from specli.files import changing, unwritable, write_whole
from specli.models.registry import load_registry, read_registry, user_file
from specli.settings import check_text


def add_name(alias: str, values: Mapping[str, str | float], quant: str, file: str) -> Path:
    """Write down a model's name; return the registry that it stands in.

    values: by key. Raises UsageError where that is no entry, or the name is taken, ModelError where
    the file cannot be read or written.
    """
    lines = [f"[models.{_quoted(alias)}]"]
    lines += [
        f"{key} = {_quoted(value) if isinstance(value, str) else value}"
        for key, value in values.items()
    ]
    lines += [f"[models.{_quoted(alias)}.files]"]
    lines += [f"{_quoted(quant)} = {{ file = {_quoted(file)} }}"]
    text = "\n".join(lines) + "\n"
    with _changing() as path:
        if path.exists() and alias in read_registry(path):
            hint = f"specli models rm {alias} removes it; or use another name"
            raise UsageError(f"{alias} exists already in {path}", hint)
        check_text("what is to be added", text)
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = f"{before}\n{text}" if before else text
        try:
            _check(after)
        except ModelError as error:
            said = re.sub(r"^.*models\.toml:(\d+:)? ", "", error.message)
            raise UsageError(f"that is no entry: {said}", error.hint) from None
        write_whole(path, after.encode())
    return path


def is_own(alias: str) -> bool:
    """Say whether the user gave a model this name."""
    path = user_file()
    return path.exists() and alias in read_registry(path)


def remove_name(alias: str) -> Path:
    """Remove a name of the user's; return the registry that it stood in. Comments stay.

    Raises UsageError where another model's draft has that name, else as add_name.
    """
    import tomlkit

    with _changing() as path:
        document: Any = tomlkit.parse(path.read_text(encoding="utf-8-sig"))
        if alias not in document.get("models", {}):  # another command was faster
            return path
        del document["models"][alias]
        if not document["models"]:
            del document["models"]
        after = tomlkit.dumps(document)
        try:
            _check(after)
        except ModelError as error:
            said = re.sub(r"^.*models\.toml:(\d+:)? ", "", error.message)
            raise UsageError(f"{alias} is still needed: {said}", f"edit {path}") from None
        write_whole(path, after.encode())
    return path


@contextmanager
def _changing() -> Iterator[Path]:
    """Let nobody else change the registry meanwhile."""
    path = user_file()
    try:
        with changing(path.parent):
            yield path
    except OSError as error:
        raise ModelError(unwritable(path, error).message) from None


def _check(text: str) -> None:
    """Raise ModelError where this would be no registry."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "models.toml"
        path.write_text(text, encoding="utf-8")
        load_registry(path)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # TOML has the same escapes, but no surrogates
