"""The syntax of code in colours, a line at a time."""

from collections.abc import Iterator

from rich.segment import Segment
from rich.syntax import Syntax

THEME = "ansi_dark"  # the terminal's own sixteen colours, on its own background
MOST_LINES = 60  # of a string or comment that goes on and on


class CodeColours:
    """Colours lines of code as they come. What is open, as a string of several lines, is kept."""

    def __init__(self, language: str) -> None:
        self._lexer = Syntax("", language, tab_size=0).lexer if language else None
        self._theme = Syntax.get_theme(THEME)
        self._open: list[str] = []

    def line(self, line: str) -> Iterator[Segment]:
        """Yield the parts of the next line, which ends in a newline."""
        if self._lexer is None:
            yield Segment(line)
            return
        start = sum(map(len, self._open))
        self._open.append(line)
        position, kind = 0, None
        for kind, text in self._lexer.get_tokens("".join(self._open)):
            position += len(text)
            part = text[max(0, start - position + len(text)) :]
            if part:
                yield Segment(part, self._theme.get_style_for_token(kind))
        if str(kind).startswith("Token.Text") or len(self._open) >= MOST_LINES:
            self._open.clear()
