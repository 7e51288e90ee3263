"""What llama.cpp's parser of grammars hangs over, or ends the process with, is refused before."""

import re
from typing import NoReturn

from specli.errors import UsageError

# A symbol takes 8 bytes in each of the 128 states that are kept of an answer.
_MOST_SYMBOLS = 200_000
_MOST_NESTED = 200  # parentheses: its parser calls itself
_MOST_TIMES = 2000  # its own limit of {n}
_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |"(?P<literal>(?:[^"\\]|\\.)*)"
    |(?P<one>\[(?:[^\]\\]|\\.)*\]|\.|<[^>]*>)
    |(?P<name>[a-zA-Z][a-zA-Z0-9-]*)(?P<defined>\s*::=)?
    |(?P<sign>[|()?*+])
    |\{(?P<times>[^}]*)\}""",
    re.VERBOSE | re.DOTALL,
)
_TIMES = re.compile(r"\s*(\d{1,9})\s*(,?)\s*(\d{0,9})\s*")


class _Group:
    """What stands between two parentheses, or in a rule. can_be_empty: of its alternatives."""

    def __init__(self) -> None:
        self.n_symbols = 0
        self.is_empty = True  # the alternative so far
        self.can_be_empty = False

    def alternative(self) -> None:
        """Begin another alternative."""
        self.can_be_empty |= self.is_empty
        self.is_empty = True


def check_limits(text: str) -> None:
    """Raise UsageError where a grammar is too large, nested too deeply or repeats badly."""
    groups = [_Group()]
    n_symbols, is_empty = 0, True  # of what stands last
    n_before = 0  # symbols of the rules before this one
    was_empty = True  # the alternative, before what stands last
    defined = set()
    for token in _TOKEN.finditer(text):
        kind, group = token.lastgroup, groups[-1]
        if kind == "comment":
            continue
        if kind == "defined":
            if token["name"] in defined:
                _refuse(f"rule {token['name']!r} is defined twice", text, token)
            defined.add(token["name"])
            n_before += groups[0].n_symbols
            groups = [_Group()]
            continue
        if token[0] == "|":
            group.alternative()
            continue
        if token[0] == "(":
            groups.append(_Group())
            if len(groups) > _MOST_NESTED:
                _refuse(f"{_MOST_NESTED} parentheses within each other at most", text, token)
            continue
        if kind == "times" or token[0] in "?*+":
            least, most = _times(token["times"], text, token) if kind == "times" else (0, 1)
            if kind == "times" and most > 1 and is_empty:
                what = "what is repeated can be empty already: it could be read in endless ways"
                _refuse(what, text, token)
            group.n_symbols += n_symbols * (max(least, most, 1) - 1)
            if least == 0 and token[0] != "+":
                group.is_empty, is_empty = was_empty, True
        else:
            if token[0] == ")":
                if len(groups) == 1:
                    return  # the parser says what is wrong
                group.alternative()
                groups.pop()
                n_symbols, is_empty = group.n_symbols, group.can_be_empty
            else:
                n_symbols = len(token["literal"]) if kind == "literal" else 1
                is_empty = kind == "literal" and not n_symbols
            group = groups[-1]
            was_empty = group.is_empty
            group.is_empty &= is_empty
            group.n_symbols += n_symbols
        if n_before + group.n_symbols > _MOST_SYMBOLS:
            raise UsageError(
                f"the grammar is too large: {_MOST_SYMBOLS:,} characters and names at most are"
                " wanted, repetitions counted",
                "let it say less",
            )


def _times(value: str, text: str, token: re.Match[str]) -> tuple[int, int]:
    """Return the least and the most of {n}, {n,} or {n,m}."""
    match = _TIMES.fullmatch(value)
    if not match:
        _refuse("{n}, {n,} or {n,m} is wanted, of numbers up to 2000", text, token)
    least = int(match[1])
    most = int(match[3]) if match[3] else least if not match[2] else max(least, 1)
    if max(least, most) > _MOST_TIMES:
        _refuse(f"{_MOST_TIMES} repetitions at most", text, token)
    if most < least:
        _refuse(f"at least {least} times and at most {most}", text, token)
    return least, most


def _refuse(what: str, text: str, token: re.Match[str]) -> NoReturn:
    line = text.count("\n", 0, token.start()) + 1
    shown = text[token.start() : token.start() + 40].splitlines()[0]
    raise UsageError(
        f"the grammar is not valid GBNF: {what} at {shown!r} in line {line}",
        'for example: root ::= "yes" | "no"',
    )
