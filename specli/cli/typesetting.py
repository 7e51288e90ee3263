"""Complete blocks of Markdown, set for a terminal by rich."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from specli.cli.code_colours import THEME, CodeColours
from specli.text import TerminalText

_THEME = Theme({"markdown.code": "bold cyan", "markdown.code_block": "none"})
_LISTS = ("bullet_list", "ordered_list")


class _Heading(Heading):
    """A heading that stands where the text does."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _CodeBlock(CodeBlock):
    """Code without a frame of spaces around it, between the fences that it has."""

    fences = "", ""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> "_CodeBlock":
        block = cls(token.info.partition(" ")[0] or "text", THEME)
        block.fences = f"{token.markup}{token.info}".rstrip(), token.markup
        return block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        begin, end = (Text(fence, "dim") for fence in self.fences)
        code = _highlighted(str(self.text).rstrip(), self.lexer_name)
        yield from (begin, code, end) if begin else (code,)


class _Document(Markdown):
    """Markdown of which nothing is left out and nothing becomes a link of the terminal."""

    elements = Markdown.elements | {  # as rich declares it
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
    }

    def __init__(self, tokens: Sequence[Token]) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = list(tokens)


class Typesetter:
    """Sets Markdown. Of control sequences it writes styles only, and only its own."""

    def __init__(self, encoding: str, colours: bool) -> None:
        # HTML is text like any other: taken as HTML, nobody would see it. So are the rest of these.
        self._parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        self._parser.disable(["reference", "entity"])
        self._console = Console(force_terminal=True, theme=_THEME, no_color=not colours)
        self._system = self._console._color_system or ColorSystem.STANDARD
        self._encoding = encoding

    def split(self, raw: str) -> tuple[str, str]:
        """Split lines of Markdown into blocks that are complete, and what may go on.

        A block is complete where an unrelated line would begin another. A list may go on after
        blank lines; of it, all items but the last are complete.
        """
        lines = [f"{line}\n" for line in raw.split("\n")[:-1]]
        tokens = self._parser.parse(raw + "x\n")
        starts = [token.map[0] for token in tokens if token.map and _begins(token)]
        last = starts[-1]
        if last == len(lines) and self._ends_in_a_list(raw):
            last = starts[-2]
        return "".join(lines[:last]), "".join(lines[last:])

    def _ends_in_a_list(self, raw: str) -> bool:
        tokens = self._parser.parse(raw)
        return bool(tokens) and tokens[-1].type in [f"{kind}_close" for kind in _LISTS]

    def blocks(self, source: str, width: int) -> str:
        """Return complete blocks, and a blank line after them where there is one."""
        blank = "\n" if source.endswith("\n\n") else ""
        options = self._console.options.update(width=width)
        options.encoding = self._encoding
        document = _Document(list(_kept(self._parser.parse(source))))
        lines = [*map(_stripped, Segment.split_lines(self._console.render(document, options)))]
        said = "".join(segment.text for line in lines for segment in line)
        text = "\n".join(map(self._styled, lines)).strip("\n")
        if _characters(said) != _characters(source):
            text = source.rstrip("\n")  # as in a table that is too wide: nothing may get lost
        return f"{text}\n{blank}"

    def code(self, language: str) -> Callable[[str], str]:
        """Return what colours the next line of a code block in a language."""
        if self._console.no_color:
            return lambda line: line
        colours = CodeColours(language)

        def coloured(line: str) -> str:
            parts = list(colours.line(line))
            if "".join(part.text for part in parts) != line:
                return line
            parts[-1] = parts[-1]._replace(text=parts[-1].text.removesuffix("\n"))
            return self._styled(parts) + "\n"

        return coloured

    def quiet(self, line: str) -> str:
        """Return a line that is there for order's sake."""
        return "\x1b[2m" + line.rstrip("\n") + "\x1b[0m\n"

    def _styled(self, segments: Iterable[Segment]) -> str:
        if self._console.no_color:
            segments = Segment.remove_color(segments)
        safe = TerminalText()
        shown = "".join(
            style.render(safe.feed(text), color_system=self._system) if style else safe.feed(text)
            for text, style, control in segments
            if not control
        )
        return shown + safe.end()


def _begins(token: Token) -> bool:
    """Say whether a token begins a block, or an item of a list that is no part of another."""
    is_item = token.type == "list_item_open" and token.level == 1
    is_list = token.type in [f"{kind}_open" for kind in _LISTS]
    return is_item or (token.level == 0 and token.nesting >= 0 and not is_list)


def _kept(tokens: Iterable[Token]) -> Iterator[Token]:
    """Let lines end where the model ended them."""
    for token in tokens:
        children = token.children and [
            replace(child, type="hardbreak") if child.type == "softbreak" else child
            for child in token.children
        ]
        yield replace(token, children=children)


def _characters(text: str) -> Counter[str]:
    """Count letters and digits."""
    return Counter(filter(str.isalnum, text))


def _highlighted(code: str, language: str) -> Text:
    text = Syntax(code, language or "text", theme=THEME).highlight(code)
    text.rstrip()  # of the newline that it adds
    text.no_wrap, text.overflow = True, "ignore"
    return text


def _stripped(line: list[Segment]) -> list[Segment]:
    """Return a line without the blanks that rich fills it up with."""
    line = list(line)
    while line and not line[-1].text.strip():
        line.pop()
    if line:
        line[-1] = line[-1]._replace(text=line[-1].text.rstrip())
    return line
