"""What llama.cpp's parser of grammars hangs over, or ends the process with, is refused before."""

import re
from dataclasses import dataclass
from typing import NoReturn

from specli.errors import UsageError

# A symbol takes 8 bytes in each of the 128 states that are kept of an answer.
_MOST_SYMBOLS = 200_000
_MOST_NESTED = 200  # parentheses: its parser calls itself
_MOST_TIMES = 2000  # its own limit of {n}
_MOST_PASSES = 10  # each of 0.2 s at most: rules that can be empty by so many others in between
_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |"(?P<literal>(?:[^"\\]|\\.)*)"
    |(?P<one>\[(?:[^\]\\]|\\.)*\]|\.|<[^>]*>)
    |(?P<name>[a-zA-Z0-9-]+)(?P<defined>\s*::=)?
    |(?P<sign>[|()?*+])
    |\{(?P<times>[^}]*)\}""",
    re.VERBOSE | re.DOTALL,
)
_TIMES = re.compile(r"\s*(\d{1,9})\s*(,?)\s*(\d{0,9})\s*")


def check_limits(text: str) -> None:
    """Raise UsageError where a grammar is too large, nested too deeply or repeats badly."""
    can_be_empty = frozenset[str]()  # names of rules; those that name others are known later
    for _ in range(_MOST_PASSES):
        found = _Limits(text, can_be_empty).check()
        if found == can_be_empty:
            return
        can_be_empty = found


@dataclass(slots=True)
class _Group:
    """What stands between two parentheses, or in a rule."""

    n_symbols: int = 0
    is_empty: bool = True  # its alternative so far
    can_be_empty: bool = False  # one of those before


class _Limits:
    """Goes through a grammar once, token by token; what is no grammar it leaves to the parser."""

    def __init__(self, text: str, can_be_empty: frozenset[str]) -> None:
        """can_be_empty: rules of which that is known."""
        self._text = text
        self._can_be_empty = set(can_be_empty)
        self._rule = ""  # the one that it is in
        self._defined: set[str] = set()
        self._n_before = 0  # symbols of the rules before this one
        self._groups = [_Group()]
        self._last = _Group()  # what stands last: what a repetition repeats
        self._was_empty = True  # the alternative before that

    def check(self) -> frozenset[str]:
        """Return the rules that can be empty. Raises UsageError for what is beyond the limits."""
        for token in _TOKEN.finditer(self._text):
            self._take(token)
            if self._n_before + self._groups[-1].n_symbols > _MOST_SYMBOLS:
                raise UsageError(
                    f"the grammar is too large: {_MOST_SYMBOLS:,} characters and names at most are"
                    " wanted, repetitions counted",
                    "let it say less",
                )
        self._end_rule()
        return frozenset(self._can_be_empty)

    def _take(self, token: re.Match[str]) -> None:
        kind, sign = token.lastgroup, token["sign"]
        if kind == "defined":
            self._define(token)
        elif kind == "times":
            least, most = _times(token["times"], self._text, token)
            if most > 1 and self._last.can_be_empty:
                what = "what is repeated can be empty already: it could be read in endless ways"
                _refuse(what, self._text, token)
            self._groups[-1].n_symbols += self._last.n_symbols * (max(most, 1) - 1)
            self._repeat(least)
        elif sign in ("?", "*"):
            self._repeat(0)
        elif sign == "|":
            self._end_alternative()
        elif sign == "(":
            if len(self._groups) > _MOST_NESTED:
                what = f"{_MOST_NESTED} parentheses within each other at most"
                _refuse(what, self._text, token)
            self._groups.append(_Group())
        elif sign == ")" and len(self._groups) > 1:
            self._end_alternative()
            self._add(self._groups.pop())
        elif kind == "literal":
            n = len(token["literal"])
            self._add(_Group(n, can_be_empty=not n))
        elif kind in ("one", "name"):
            self._add(_Group(1, can_be_empty=token["name"] in self._can_be_empty))

    def _define(self, token: re.Match[str]) -> None:
        name = token["name"]
        if name in self._defined:
            _refuse(f"rule {name!r} is defined twice", self._text, token)
        self._end_rule()
        self._defined.add(name)
        self._rule = name
        self._n_before += self._groups[0].n_symbols
        self._groups = [_Group()]

    def _end_rule(self) -> None:
        self._end_alternative()
        if self._rule and self._groups[0].can_be_empty:
            self._can_be_empty.add(self._rule)

    def _end_alternative(self) -> None:
        group = self._groups[-1]
        group.can_be_empty |= group.is_empty
        group.is_empty = True

    def _add(self, item: _Group) -> None:
        group, self._last = self._groups[-1], item
        self._was_empty = group.is_empty
        group.is_empty &= item.can_be_empty
        group.n_symbols += item.n_symbols

    def _repeat(self, least: int) -> None:
        """Take note that what stands last need not be there, if so."""
        if least == 0:
            self._groups[-1].is_empty = self._was_empty
            self._last.can_be_empty = True


def _times(value: str, text: str, token: re.Match[str]) -> tuple[int, int]:
    """Return the least and the most of {n}, {n,} or {n,m}."""
    match = _TIMES.fullmatch(value)
    if not match:
        _refuse("{n}, {n,} or {n,m} is wanted, of numbers up to 2000", text, token)
    least = int(match[1])
    most = int(match[3]) if match[3] else least  # {n,}: the rest is one rule that comes again
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
