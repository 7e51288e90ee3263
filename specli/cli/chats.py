"""specli chats: the conversations that were kept."""

import json
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from specli.cli.known_words import chat_ids
from specli.cli.streams import file_or_stdout, say, write, write_lines
from specli.errors import SpecliError
from specli.text import shortened, terminal_safe

if TYPE_CHECKING:
    from specli.conversations import Conversation

chats = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The conversations that were kept."
)
Id: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="ID", help="Its ID, or the beginning of that.", autocompletion=chat_ids),
]


class Format(str, Enum):  # noqa: UP042  # typer reads it
    """How a conversation is given away."""

    md = "md"
    json = "json"


@chats.callback()
def _chats() -> None:
    """The conversations that were kept.

    Example: specli chats list
    """


@chats.command("list")
def list_chats(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List them, the latest first.

    \b
    Example:
      specli chats list
    """
    from specli.conversation_files import conversations_folder, read, saved

    found = []
    for path in saved():
        try:
            found.append((path, read(path)))
        except SpecliError as error:
            say("warning", error.message)
    if as_json:
        write(json.dumps([_about(path, whole) for path, whole in found], indent=2) + "\n")
    elif not found:
        say("chats", f"there are none in {conversations_folder()}")
    for _, whole in () if as_json else found:
        day = whole.changed.replace("T", " ")[:16]
        n = len(whole.turns)
        turns = "turn " if n == 1 else "turns"
        write_lines([f"{whole.id}  {day}  {n:>3} {turns}  {shortened(whole.title, 60)}"])


@chats.command()
def show(chat: Id) -> None:
    """Print one, to be read.

    \b
    Example:
      specli chats show 3f9a | less
    """
    from specli.conversation_files import find, read
    from specli.conversations import as_markdown

    write(terminal_safe(as_markdown(read(find(chat)))))


@chats.command()
def export(
    chat: Id,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="Markdown, or JSON with messages as chat APIs have.",
            show_default="json where --out ends in .json, else md",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a file, not stdout.")
    ] = None,
) -> None:
    """Give one away as Markdown or JSON. What was exported as JSON, /load of a chat reads.

    \b
    Examples:
      specli chats export 3f9a > talk.md
      specli chats export 3f9a --out talk.json
    """
    from specli.cli.exporting import form_of, write_export
    from specli.conversation_files import find, read

    whole = read(find(chat))
    file = file_or_stdout(out)
    text = form_of(file, form.value if form else "")(whole)
    if file:
        write_export(file, text)
    else:
        write(terminal_safe(text) if sys.stdout.isatty() else text)


@chats.command()
def rm(
    chat: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...", help="IDs, or the beginnings of such.", autocompletion=chat_ids
        ),
    ],
) -> None:
    """Remove conversations, and what models remember of them. There is no way back.

    \b
    Example:
      specli chats rm 3f9a
    """
    from specli.conversation_files import find, remove
    from specli.kv_state import state_file

    for path in dict.fromkeys(find(name) for name in chat):
        remove(path)
        state_file(path.stem).unlink(missing_ok=True)
        say("removed", path.stem)


def _about(path: Path, whole: "Conversation") -> dict[str, object]:
    return {
        "id": whole.id,
        "created": whole.created,
        "changed": whole.changed,
        "turns": len(whole.turns),
        "title": whole.title,
        "target": whole.target,
        "draft": whole.draft or None,
        "path": str(path),
    }
