"""The environment variable of every option.

An option that the commands which load models share is SPECLI_<OPTION>, wherever it stands. One that
a command has for itself is SPECLI_<COMMAND>_<OPTION>: --out is one thing to bench and another
to trace. --offline means the same everywhere.
"""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import Any

from typer.core import TyperGroup

from specli.cli.options import option_names
from specli.cli.streams import say

_EVERYWHERE = frozenset({"offline"})


class Specli(TyperGroup):
    """The command with all its subcommands, each option of which gets its variable."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        shared = option_names()
        for command, path in commands_of(self, ()):
            _name_variables(command, "_".join(("SPECLI", *path)), shared)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Say first which variables mean nothing: they were set so that something changes."""
        if not ctx.resilient_parsing and not _is_quiet(args):
            for line in unknown_variables(self):
                say("warning", line)
        return super().parse_args(ctx, args)


def commands_of(command: Any, path: tuple[str, ...]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield a command of click's and all below it, each with the words that call it."""
    yield command, path
    for name, below in getattr(command, "commands", {}).items():
        yield from commands_of(below, (*path, name.upper().replace("-", "_")))


def variables_of(command: Any) -> set[str]:
    """Return the variables of all options of a command and those below it."""
    found = (one.params for one, _ in commands_of(command, ()))
    return {param.envvar for params in found for param in params if param.envvar}


def unknown_variables(root: Any) -> list[str]:
    """Return what to say of variables that no option has."""
    from difflib import get_close_matches

    known = {*variables_of(root), "SPECLI_DEBUG"}
    found = []
    for name in sorted(os.environ):
        if name.startswith("SPECLI_") and os.environ[name] and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.7)
            found.append(f"{name}: no option has this variable{_meant(near)}")
    return found


def _meant(near: list[str]) -> str:
    return f"; did you mean {near[0]}?" if near else ""


def _is_quiet(words: Sequence[str]) -> bool:
    """Say whether a command line asks for nothing on stderr but what went wrong."""
    quiet = any(word == "--quiet" or re.match("-q[a-z]*$", word) for word in words)
    return quiet or (words[:1] == ["run"] and bool(os.environ.get("SPECLI_RUN_QUIET")))


def _name_variables(command: Any, prefix: str, shared: Collection[str]) -> None:
    loads_models = {*shared} <= {param.name for param in command.params}
    for param in command.params:
        if param.param_type_name != "option" or param.is_eager:  # --version, --install-completion
            continue
        option = max(param.opts, key=len).lstrip("-").upper().replace("-", "_")
        is_shared = param.name in (shared if loads_models else _EVERYWHERE)
        param.envvar = f"SPECLI_{option}" if is_shared else f"{prefix}_{option}"
        param.show_envvar = True
        if param.multiple:
            # click would take every word of it for one value.
            param.type = copy(param.type)
            param.type.split_envvar_value = lambda text: [text]


def said_of(error: Any) -> str:
    """Return what click says of a value, under the name by which the user gave it."""
    param, context = getattr(error, "param", None), getattr(error, "ctx", None)
    said = str(error.format_message())
    if param is None or not getattr(param, "envvar", None):
        return said
    source = context.get_parameter_source(param.name) if context else None
    if source is not None and source.name == "ENVIRONMENT":
        return f"{param.envvar}: {error.message}"
    return said.replace(f" (env var: '{param.envvar}')", "")
