"""JSON whose values are the same for every reader: what one could not take is an error."""

import json
from math import isinf
from typing import Any, NoReturn

from specli.errors import UsageError

_MOST_BYTES = 2_000_000
_MOST_DIGITS = 100


def read_json(text: str, name: str) -> Any:
    """Return what a text says. Raises UsageError with the place, or the number, that is wrong.

    Refused beside what is no JSON: numbers that become infinite, those with more than a hundred
    digits, NaN, and halves of pairs (surrogates), which no text in UTF-8 has.
    """
    if len(text) > _MOST_BYTES:
        raise UsageError(
            f"{name} is too large: {len(text):,} characters, {_MOST_BYTES:,} at most",
            "is it the file that you meant? make it say less",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} is not valid UTF-8", "save it as UTF-8") from None

    def refuse(number: str, why: str = "is no number of JSON") -> NoReturn:
        shown = number if len(number) < 40 else f"{number[:36]}..."
        raise UsageError(f"{name}: {shown} {why}", "leave it out, or write a smaller number")

    def whole(number: str) -> int:
        if len(number) > _MOST_DIGITS:
            refuse(number, f"has {len(number)} digits, {_MOST_DIGITS} at most can be kept to")
        return int(number)

    def fraction(number: str) -> float:
        if isinf(value := float(number)):
            refuse(number, "is too large for a number of most programs")
        return value

    try:
        value = json.loads(text, parse_constant=refuse, parse_int=whole, parse_float=fraction)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{name} is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}",
            'give a file, or JSON in quotes: \'{"type": "object", ...}\'',
        ) from None
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise UsageError(
            f"{name} holds {half!r}, half of a pair, which is no character",
            "write the character itself, in UTF-8",
        ) from None
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply", "put parts of it under $defs") from None
    return value
