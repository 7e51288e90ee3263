"""Where the value of an option comes from: a flag, the environment, config.toml, or nowhere."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, get_origin

from specli.errors import UsageError

if TYPE_CHECKING:
    from specli.cli.options import ModelOptions
    from specli.config import Key

Kind: TypeAlias = Literal["flag", "environment", "file", "pair", "default"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from. name: how it is called there: --temp, SPECLI_TEMP, FILE: temp."""

    kind: Kind
    name: str

    @property
    def is_for_now(self) -> bool:
        """Whether it was given for this call, not for good."""
        return self.kind in ("flag", "environment")


def flag_of(name: str) -> str:
    """Return the long flag of an option."""
    return f"--{name.replace('_', '-')}"


def settled(options: "ModelOptions", kinds: Mapping[str, Any], context: Any) -> "ModelOptions":
    """Fill in what config.toml says where neither flag nor environment does; note the origins.

    kinds: the options' types. context: click's, of the command. Raises UsageError.
    """
    from specli.config import config_file, load_config

    origins = {}
    for name in kinds:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            origins[name] = Origin("flag", flag_of(name))
        elif source is not None and source.name == "ENVIRONMENT":
            origins[name] = Origin("environment", f"SPECLI_{name.upper()}")
    chosen = load_config(keys_of(kinds)).values
    taken = {name: value for name, value in chosen.items() if name not in origins}
    path = config_file()
    origins |= {name: Origin("file", f"{path}: {name}") for name in taken}
    values = {name: converted(value, kinds[name]) for name, value in taken.items()}
    return replace(options, origins=origins, **values)


@contextmanager
def named_as_given(options: "ModelOptions") -> Iterator[None]:
    """Let what is said of --OPTION name the variable, or the key of the file, that it came from."""
    try:
        yield
    except UsageError as error:
        match = re.match(r"--([a-z-]+)(?=[ :])", error.message)
        origin = options.origins.get(match[1].replace("-", "_")) if match else None
        if match and origin and origin.kind != "flag":
            error.message = origin.name + error.message[match.end() :]
            error.args = (error.message,)
        raise


def keys_of(kinds: Mapping[str, Any]) -> "dict[str, Key]":
    """Return what may stand at the top of config.toml, for options of these types."""
    return {name: _key(name, kind) for name, kind in kinds.items()}


def _key(name: str, kind: Any) -> "Key":
    from specli import config

    if name == "draft_tokens":
        return config.DRAFT_TOKENS
    if name in ("target", "draft"):
        return config.NAME
    if choices := _choices(kind):
        return config.choice_of(*choices)
    if get_origin(kind) is list:
        return config.TEXTS
    return {bool: config.FLAG, int: config.WHOLE, float: config.NUMBER}.get(kind, config.TEXT)


def bare(annotation: Any) -> Any:
    """Return the type of an option without typer's description and without None."""
    kind = get_args(annotation)[0]
    others = [part for part in get_args(kind) if part is not NoneType]
    is_optional = NoneType in get_args(kind)
    return others[0] if is_optional and len(others) == 1 else kind


def _choices(kind: Any) -> Sequence[str]:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    return get_args(kind) if get_origin(kind) is Literal else ()


def converted(value: Any, kind: Any) -> Any:
    """Return a value of config.toml as the option's own type has it."""
    if get_origin(kind) is list:
        return [value] if isinstance(value, str) else value
    if kind is Path:
        return Path(value).expanduser()
    if kind in (float, str) or (isinstance(kind, type) and issubclass(kind, Enum)):
        return kind(value)
    return value
