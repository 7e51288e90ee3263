"""The documentation: what it links to is there, and what it tells people to type exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
import typer
from markdown_it import MarkdownIt
from markdown_it.token import Token

from specli.cli.app import ClickException, app
from specli.cli.variables import commands_of, variables_of
from specli.models.here import reckoned_bytes
from specli.models.registry import Entry, load_registry
from specli.text import human_size

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WRITTEN = [
    page  # for people who use specli; not history, nor what is generated
    for page in PAGES
    if page.parent.name not in ("benchmarks", "adr")
    and page.name not in ("CONTRIBUTING.md", "cli.md")
]
PICTURE = ROOT / "docs" / "terminal.svg"
OTHERS = {"--no-deps"}  # options of other programs
CHECKED = ("choice", "int", "int range", "float", "float range")  # types of options


class Command(NamedTuple):
    """A line that people are told to type. words: what follows `specli`."""

    page: str
    line: str
    words: list[str]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def tokens(page: Path) -> Iterator[Token]:
    """Yield the tokens of a page, those inside of paragraphs among them."""
    parser = MarkdownIt("commonmark").enable("table")
    for token in parser.parse(page.read_text(encoding="utf-8")):
        yield token
        yield from token.children or ()


def anchors(page: Path) -> set[str]:
    """Return what can stand behind a # in a link to a page, as repository pages make it."""
    found: set[str] = set()
    before = Token("", "", 0)
    for token in tokens(page):
        if before.type == "heading_open":
            words = "".join(t.content for t in token.children or ())
            found.add(re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-"))
        before = token
    return found


def commands(page: Path) -> Iterator[Command]:
    """Yield each `specli ...` in the blocks of code of a page, and between backticks."""
    for token in tokens(page):
        if token.type in ("fence", "code_block", "code_inline") and token.info != "python":
            for line in token.content.splitlines():
                if line.startswith(("from ", "import ", "error:", "hint:")):
                    continue
                for words in calls(line):
                    yield Command(name(page), line, words)


def calls(line: str) -> Iterator[list[str]]:
    """Yield what each call of specli in a shell's line is given, of those in quotes, too."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # an apostrophe: prose
        return
    given: list[str] | None = None
    for word in [*words, ";"]:
        if re.fullmatch(r"[();<>|&]+", word):
            if given is not None:
                yield given
            given = None
        elif given is not None:
            given.append(word)
        elif word == "specli":
            given = []
        if word != line and "specli " in word:
            inside = re.search(r"\$\((specli [^)]*)\)", word)
            yield from calls(inside.group(1) if inside else word)


def check(words: list[str]) -> None:
    """Parse what specli is given. Raises what click raises of names that do not exist."""
    command: Any = typer.main.get_command(app)
    while True:
        context = type(command).context_class(command, info_name=command.name)
        given, rest, _ = command.make_parser(context).parse_args(list(words))
        for param in command.params:
            value = given.get(param.name)
            if isinstance(value, str) and param.type.name in CHECKED:
                param.type.convert(value, param, context)
        if not rest or not hasattr(command, "commands"):
            return
        assert rest[0] in command.commands, f"specli has no command {rest[0]}"
        command, words = command.commands[rest[0]], rest[1:]


def option_names() -> set[str]:
    found = {"--help", "--install-completion", "--show-completion"}
    for command, _ in commands_of(typer.main.get_command(app), ()):
        for param in command.params:
            found |= {*param.opts, *param.secondary_opts}
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    links = [token.attrGet("href") or token.attrGet("src") for token in tokens(page)]
    for link in filter(None, map(str, filter(None, links))):
        target = urlsplit(link)
        if target.scheme:
            continue
        file = (page.parent / target.path).resolve() if target.path else page
        assert file.exists(), link
        assert file.is_relative_to(ROOT), link
        if target.fragment:
            assert target.fragment in anchors(file), link


def test_every_page_is_linked_to() -> None:
    linked: set[Path] = set()
    for page in PAGES:
        links = (str(token.attrGet("href") or "") for token in tokens(page))
        linked |= {(page.parent / urlsplit(link).path).resolve() for link in links if link}
    pages = {page for page in PAGES if page.parent == ROOT / "docs"}
    assert pages <= linked


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_commands_exist(page: Path) -> None:
    for command in commands(page):
        try:
            check(command.words)
        except (ClickException, AssertionError) as error:
            raise AssertionError(f"{command.line}: {error}") from None


def test_commands_are_found_in_lines_of_a_shell() -> None:
    line = """for f in *; do a "$(specli models path b)" | specli run -q 'c | d' -n 8 >e; done"""
    line += " && sh -c 'specli chat --temp 0'  # specli nothing"
    assert [*calls(line)] == [
        ["models", "path", "b"],
        ["run", "-q", "c | d", "-n", "8"],
        ["chat", "--temp", "0"],
    ]
    assert len([*commands(ROOT / "README.md")]) > 10


@pytest.mark.parametrize(
    "wrong",
    ["run --no-such", "nothing", "models nothing", "chat --overflow loudly", "run -n", "run -n x"],
)
def test_wrong_commands_are_noticed(wrong: str) -> None:
    with pytest.raises((ClickException, AssertionError)):
        check(wrong.split())


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_options_and_variables_exist(page: Path) -> None:
    known = option_names() | OTHERS
    variables = variables_of(typer.main.get_command(app)) | {"SPECLI_DEBUG"}
    for token in tokens(page):
        if token.type not in ("code_inline", "fence", "code_block"):
            continue
        assert {*re.findall(r"\bSPECLI_\w+", token.content)} <= variables
        if token.type == "code_inline":
            assert {*re.findall(r"(?<![\w-])--[a-z][a-z-]*\w", token.content)} <= known


def test_the_pairs_are_those_of_the_registry() -> None:
    registry = load_registry()

    def size(entry: Entry) -> str:
        exact = "" if entry.quant().size_bytes else "~"
        return exact + human_size(reckoned_bytes(entry, entry.quant()))

    def row(entry: Entry) -> str:
        draft = registry[entry.draft]
        share = reckoned_bytes(draft, draft.quant()) / reckoned_bytes(entry, entry.quant())
        cells = f"`{entry.alias}`", size(entry), f"`{draft.alias}`", size(draft), f"{share:.0%}"
        return f"| {' | '.join(cells)} |"

    pairs = [entry for entry in registry.values() if entry.method == "draft"]
    pairs.sort(key=lambda entry: reckoned_bytes(entry, entry.quant()))
    table = "\n".join(map(row, pairs))
    assert table in (ROOT / "docs" / "models.md").read_text(), f"docs/models.md:\n{table}"


def test_aliases_exist() -> None:
    registry = load_registry()
    for page in WRITTEN:
        for command in commands(page):
            for flag, model in zip(command.words, command.words[1:], strict=False):
                if flag in ("-t", "--target", "-d", "--draft") and re.match(
                    r"[a-z][\w.-]*\d", model
                ):
                    assert model.split(":")[0] in registry, command.line


def test_the_picture_of_a_terminal_loads_nothing() -> None:
    drawn = PICTURE.read_text(encoding="utf-8")
    root = ElementTree.fromstring(drawn)
    assert "docs/terminal.svg" in (ROOT / "README.md").read_text()
    assert re.findall(r"\w+://[^\"\s)]*", drawn) == ["http://www.w3.org/2000/svg"]  # its xmlns
    assert not re.search(r"@import|@font-face|<script|<image|href", drawn)
    text = "\n".join(element.text or "" for element in root.iter()).replace("\xa0", " ")
    assert re.search(r"speculation (on|off) \(ngram", text)
    assert re.search(r"\d tok/s", text)
    assert re.search(r"\d% accepted", text)
