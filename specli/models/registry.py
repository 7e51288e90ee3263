"""The models that have a name: models.toml, the package's and the user's."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from platformdirs import user_config_path

from specli.errors import ModelError
from specli.files import open_regular

Method: TypeAlias = Literal["draft", "ngram", "mtp", "eagle3"]


@dataclass(frozen=True, slots=True)
class File:
    """One quantization of a model. size_bytes 0 and sha256 "": not known yet.

    Of a split model, file is the first part and size_bytes the sum of all.
    """

    quant: str
    file: str
    size_bytes: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of the registry, as models.toml describes it.

    repo: "" for files on this machine, whose names are absolute paths. draft: what guesses for it
    unless told otherwise: an alias, a path, "ngram" or "none". method: how that guesses.
    vocabulary: models of one name share their tokens. checked: the month in which the names of
    repository and files were compared with public documentation, "" where they were not. gain: a
    published speed-up, 0 where there is none, and its source. wheel: a Python package that carries
    the default file, read in place where it is installed.
    """

    alias: str
    name: str
    repo: str
    files: tuple[File, ...]
    vocabulary: str
    params_b: float
    license: str
    context: int
    draft: str = "ngram"
    method: Method = "ngram"
    revision: str = ""
    gain: float = 0.0
    gain_source: str = ""
    checked: str = ""
    wheel: str = ""

    @property
    def is_local(self) -> bool:
        """Whether it names files of this machine, which nobody can fetch."""
        return not self.repo

    def quant(self, name: str = "") -> File:
        """Return one of the quantizations, the first listed by default. Raises ModelError."""
        for file in self.files:
            if not name or file.quant == name.lower():
                return file
        known = ", ".join(file.quant for file in self.files)
        raise ModelError(f"{self.alias} has no quantization {name!r}", f"it has {known}")


Registry: TypeAlias = Mapping[str, Entry]


def user_file() -> Path:
    """Return where the user's own models.toml lies, whether it exists or not."""
    return user_config_path("specli") / "models.toml"


def load_registry(user: Path | None = None) -> Registry:
    """Read the package's models.toml, and the user's where there is one: its entries win.

    Raises ModelError with the line, the key and what is wanted there.
    """
    own = user or user_file()
    entries = read_registry(_packaged())
    if own.exists():
        entries |= read_registry(own)
    for entry in entries.values():
        if entry.draft not in {*entries, "ngram", "none"} and not _is_place(entry.draft):
            raise ModelError(
                f"models.toml: {entry.alias}: no model is called {entry.draft!r}",
                'draft is an alias of the registry, the path of a file, "ngram" or "none"',
            )
    return entries


def read_registry(path: Path) -> dict[str, Entry]:
    """Read one models.toml. Raises ModelError."""
    try:
        with open_regular(path) as file:
            text = file.read().decode("utf-8-sig")
        tables = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelError(f"{path}: cannot be read: {said}") from None
    except tomllib.TOMLDecodeError as error:
        raise ModelError(f"{path}: is not valid TOML: {error}") from None
    return _Reader(path, text).entries(tables)


def find(registry: Registry, alias: str) -> Entry:
    """Return the entry of an alias. Raises ModelError that names what comes near it."""
    if alias.lower() in registry:
        return registry[alias.lower()]
    near = get_close_matches(alias.lower(), registry, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}? " if near else "specli models list shows the names. "
    raise ModelError(
        f"no model is called {alias!r}",
        f"{hint}A file is named by its path, a file on the hub as hf:org/repo/file.gguf",
    )


class _Reader:
    """Turns the tables of one models.toml into entries, and says where it cannot."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.splitlines()

    def entries(self, tables: dict[str, Any]) -> dict[str, Entry]:
        for key in tables:
            if key != "models":
                raise self._wrong("", key, f"unknown table {key!r}", "models are [models.ALIAS]")
        models = tables.get("models", {})
        if not isinstance(models, dict):
            raise self._wrong("", "models", "models is no table", "models are [models.ALIAS]")
        return {alias: self._entry(alias, table) for alias, table in models.items()}

    def _entry(self, alias: str, table: Any) -> Entry:
        if not isinstance(table, dict):
            raise self._wrong(alias, alias, f"{alias} is no table", "models are [models.ALIAS]")
        if not re.fullmatch(r"(?!.*\.gguf$|ngram$|none$)[a-z0-9][a-z0-9._-]*", alias):
            wanted = "an alias has lower-case letters, digits, '.', '-' and '_'"
            raise self._wrong(alias, alias, f"{alias!r} is no alias", wanted)
        values = self._checked(alias, Entry, table, given={"alias"})
        files = table["files"]
        is_local = not table["repo"]
        values["files"] = tuple(self._file(alias, q, files[q], is_local=is_local) for q in files)
        if not files:
            raise self._wrong(alias, "files", "files is empty", "name at least one quantization")
        if table.get("method", "ngram") not in get_args(Method):
            wanted = f"method is one of {', '.join(get_args(Method))}"
            raise self._wrong(alias, "method", f"unknown method {table['method']!r}", wanted)
        if not re.fullmatch(r"([\w.-]+/[\w.-]+)?", table["repo"]):
            raise self._wrong(alias, "repo", f"{table['repo']!r} is no repository", "org/name")
        return Entry(alias, **values)

    def _file(self, alias: str, quant: str, table: Any, *, is_local: bool) -> File:
        if not isinstance(table, dict):
            wanted = f'{quant} = {{ file = "name.gguf" }}'
            raise self._wrong(alias, quant, f"{quant} is {table!r}", wanted)
        values = self._checked(alias, File, table, given={"quant"})
        if not re.fullmatch(r"[\w.-]+", quant):
            raise self._wrong(alias, quant, f"{quant!r} is no quantization", "a name as q4_k_m")
        if is_local:
            if not Path(values["file"]).is_absolute():
                said = f"{values['file']!r} is no absolute path"
                raise self._wrong(alias, quant, said, 'a model with repo = "" lies on this machine')
        elif {"", ".", ".."} & {*values["file"].split("/")}:
            raise self._wrong(alias, quant, f"{values['file']!r} is no path", "folder/name.gguf")
        elif not values["file"].endswith(".gguf"):
            raise self._wrong(alias, quant, f"{values['file']!r} is no GGUF file", "name.gguf")
        if not re.fullmatch(r"([0-9a-f]{64})?", values.get("sha256", "")):
            raise self._wrong(alias, quant, "sha256 is no hash", "64 hexadecimal digits")
        return File(quant.lower(), **values)

    def _checked(
        self, alias: str, kind: type, table: dict[str, Any], given: set[str]
    ) -> dict[str, Any]:
        """Return the table's values if its keys and their types are those of a dataclass."""
        known = {field.name: field for field in fields(kind) if field.name not in given}
        for key, value in table.items():
            if key not in known:
                near = get_close_matches(key, known, n=1)
                fix = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
                raise self._wrong(alias, key, f"unknown key {key!r}", fix)
            wanted = _WANTED.get(key, str)
            if isinstance(value, bool) or not isinstance(value, wanted):
                raise self._wrong(alias, key, f"{key} is {value!r}", f"{_SAID[wanted]} is wanted")
            if isinstance(value, int | float) and not 0 <= value < 1e15:
                raise self._wrong(alias, key, f"{key} is {value!r}", "0 or more is wanted")
        for name, field in known.items():
            if field.default is MISSING and name not in table:
                raise self._wrong(alias, alias, f"{name} is missing", f"add {name} = ...")
        return dict(table)

    def _wrong(self, alias: str, key: str, what: str, fix: str) -> ModelError:
        where = f"{self._path}:{self._line(alias, key)}"
        return ModelError(f"{where}: {f'{alias}: ' if alias else ''}{what}", fix)

    def _line(self, alias: str, key: str) -> int:
        """Return the number of the line that a key of a model stands on, as near as it shows."""
        header = re.compile(rf'\s*\[models\."?{re.escape(alias)}"?[\].]')
        start = next((i for i, line in enumerate(self._lines) if header.match(line)), 0)
        word = re.compile(rf'(^|[\s,{{\[."]){re.escape(key)}"?\s*[=\].]')
        for i in range(start, len(self._lines)):
            if word.search(self._lines[i]):
                return i + 1
        return start + 1


_WANTED: dict[str, Any] = {
    "files": dict,
    "params_b": (int, float),
    "gain": (int, float),
    "context": int,
    "size_bytes": int,
}
_SAID: dict[Any, str] = {
    str: "a string",
    dict: "a table",
    int: "a whole number",
    (int, float): "a number",
}


def _is_place(draft: str) -> bool:
    """Say whether a draft is named by where it lies, here or on the hub."""
    return Path(draft).is_absolute() or draft.startswith("hf:")


def _packaged() -> Path:
    """Return models.toml: inside the installed package, or at the root of a source tree."""
    package = Path(__file__).parent.parent
    inside = package / "models.toml"
    return inside if inside.exists() else package.parent / "models.toml"
