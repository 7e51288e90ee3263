"""What an answer has to follow: a JSON schema or a grammar, read and checked."""

import os
import re
from pathlib import Path

from specli.errors import UsageError
from specli.files import read_text
from specli.settings import check_text


def read_grammar(json_schema: str | None, grammar: str | None) -> str:
    """Return the grammar of an answer, "" where none is asked for.

    Either is a text, or the name of the file that holds it. Raises UsageError where a file cannot
    be read, or what stands there is no schema or grammar.
    """
    if json_schema is None and grammar is None:
        return ""
    if json_schema is not None and grammar is not None:
        raise UsageError("--json-schema and --grammar cannot both be kept to", "leave one out")
    if json_schema is not None:
        from specli.backend.schema_grammar import schema_to_gbnf

        check_text("--json-schema", json_schema)
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


def _is_no_name(text: str) -> bool:
    """Say whether a text that may name a file is meant as what it says, be that wrong."""
    return bool(re.search(r"""["{}|=\n]|: """, text)) and not os.path.exists(text)  # noqa: PTH110


def _read(option: str, name: str) -> str:
    if not name:
        raise UsageError(f"{option} is empty", "is a variable of your script unset?")
    return read_text(Path(name), f"{option}: {name}", pipes=True)
