"""What an answer has to follow: --json-schema, --grammar."""

import json
from typing import Annotated, TypeAlias

import typer

from specli.errors import SpecliError

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


def check_complete(text: str, reason: str, json_schema: str | None) -> None:
    """Raise SpecliError where an answer was cut before its JSON was complete."""
    if json_schema is None or reason not in ("length", "context", "stop"):
        return
    try:
        json.loads(text)
    except (ValueError, RecursionError):
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
