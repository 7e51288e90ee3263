"""Kinds of terminals: three widths, each with four abilities."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.cli.forking import NOT_UTF_8

_COLOURS = r"\x1b\[(?:[0-9;]*;)?(?:[34][0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m"


@dataclass(frozen=True, slots=True)
class Kind:
    """A terminal. size: columns and lines. forbidden: what it must never be sent, a pattern."""

    size: tuple[int, int]
    environment: Mapping[str, str]
    forbidden: str
    has_colours: bool = False

    @property
    def is_dumb(self) -> bool:
        """Whether it moves no cursor."""
        return self.environment.get("TERM") == "dumb"

    def check(self, output: str) -> None:
        """Fail where it was sent what it cannot take; or no colours though it has them."""
        assert "Traceback" not in output
        found = re.search(self.forbidden, output)
        assert not found, repr(output[max(0, found.start() - 80) : found.end() + 20])
        assert bool(re.search(_COLOURS, output)) == self.has_colours


_ABILITIES: Mapping[str, tuple[Mapping[str, str], str, bool]] = {
    "usual": ({}, "(?!)", True),
    "no colours": ({"NO_COLOR": "1"}, _COLOURS, False),
    "dumb": ({"TERM": "dumb"}, "\x1b", False),
    "no UTF-8": (NOT_UTF_8, r"[^\x00-\x7f]|\\[xuU][0-9a-f]{2}", True),  # nor escapes of it
}
KINDS: Mapping[str, Kind] = {
    f"{columns} columns, {name}": Kind((columns, 24), *ability)
    for columns in (40, 80, 200)
    for name, ability in _ABILITIES.items()
}
on_every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
