"""What an answer has to follow: --json-schema, --grammar."""

import json
import os
import re
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from specli.errors import SpecliError, UsageError
from specli.files import read_text
from specli.settings import check_text

JsonSchema: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--json-schema",
        metavar="FILE|JSON",
        rich_help_panel="Answer",
        help="Answer in JSON that follows this schema.",
    ),
]
GrammarText: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--grammar",
        metavar="FILE|GBNF",
        rich_help_panel="Answer",
        help="Answer in what this grammar, llama.cpp's GBNF, allows.",
    ),
]


def read_grammar(json_schema: str | None, grammar: str | None) -> str:
    """Return the grammar of an answer, "" where none is asked for.

    Raises UsageError where a file cannot be read, or what stands there is no schema or grammar.
    """
    if json_schema is None and grammar is None:
        return ""
    if json_schema is not None and grammar is not None:
        raise UsageError("--json-schema and --grammar cannot both be kept to", "leave one out")
    if json_schema is not None:
        from specli.backend.schema_grammar import schema_to_gbnf

        is_json = json_schema.lstrip()[:1] in ("{", "[") or json_schema in ("true", "false")
        is_json = is_json or _is_no_name(json_schema)
        return schema_to_gbnf(json_schema if is_json else _read("--json-schema", json_schema))
    from specli.backend.grammar import check_gbnf

    assert grammar is not None
    check_text("--grammar", grammar)
    is_text = "::=" in grammar or _is_no_name(grammar)
    text = grammar if is_text else _read("--grammar", grammar)
    check_gbnf(text)
    return text


def check_complete(text: str, reason: str, json_schema: str | None) -> None:
    """Raise SpecliError where an answer was cut before its JSON was complete."""
    if json_schema is None or reason not in ("length", "context", "stop"):
        return
    try:
        json.loads(text)
    except ValueError:
        cut, hint = _CUT[reason]
        raise SpecliError(
            f"the answer was cut by {cut} before its JSON was complete", hint
        ) from None


_BOUND = "or bound what the schema allows, by maxLength and maxItems"
_CUT = {
    "length": ("--max-tokens", f"allow more, {_BOUND}"),
    "context": ("the full context", f"--ctx N allows more, {_BOUND}"),
    "stop": ("--stop", "leave it out: the JSON ends by itself"),
}


def _is_no_name(text: str) -> bool:
    """Say whether a text that may name a file is meant as what it says, be that wrong."""
    return bool(re.search(r"""["{}|=\n]|: """, text)) and not os.path.exists(text)  # noqa: PTH110


def _read(option: str, name: str) -> str:
    if not name:
        raise UsageError(f"{option} is empty", "is a variable of your script unset?")
    return read_text(Path(name), f"{option}: {name}", pipes=True)
