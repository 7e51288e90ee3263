"""The commands of a conversation: one table, from which /help and completion come."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from specli.cli.clipboard import copy
from specli.cli.exporting import form_of, write_export
from specli.cli.session import stdin_is_terminal
from specli.cli.stats_words import guessed_by, in_words
from specli.cli.streams import say, tell
from specli.cli.talk import Talk, show
from specli.cli.tracing import TracePage, check_trace
from specli.conversation_files import find, reopen
from specli.conversations import Conversation, from_json, parse
from specli.errors import SpecliError, UsageError
from specli.files import read_text
from specli.text import human_size, shortened

Kind: TypeAlias = str | tuple[str, ...]


class Leave(Exception):
    """The user wants to leave."""


@dataclass(frozen=True, slots=True)
class Command:
    """What a line that begins with a slash does.

    argument: as /help shows it. takes: the kind of its argument, for completion: file, model,
    draft, some words, or nothing that could be completed.
    """

    argument: str
    takes: Kind
    help: str
    run: Callable[[Talk, str], None]


def words() -> dict[str, Kind]:
    """Return what completion needs: each command and the kind of its argument."""
    return {name: command.takes for name, command in COMMANDS.items()}


def obey(talk: Talk, line: str) -> None:
    """Do what a line with a command says. Raises SpecliError, Leave."""
    name, argument = (*line.strip().split(maxsplit=1), "")[:2]
    if name not in COMMANDS:
        raise UsageError(f"no command is called {name}", "/help lists them")
    command = COMMANDS[name]
    if argument and not command.argument:
        raise UsageError(f"{name} takes no argument, found {argument[:40]!r}")
    if not argument and command.argument and not command.argument.startswith("["):
        raise UsageError(f"{name} needs an argument: {name} {command.argument}")
    try:
        command.run(talk, argument)
    except OSError as error:  # of a question about a path, as where its name is too long
        raise UsageError(f"{name} {shortened(argument, 60)}: {error.strerror or error}") from None


def is_command(line: str) -> bool:
    """Say whether a line is meant as a command: a path, as in /etc/hosts, is not.

    Nor is what has a blank before its slash: so people can say anything.
    """
    first = line.split(maxsplit=1)[:1]
    return line.startswith("/") and "/" not in first[0][1:]


def _help(talk: Talk, _: str) -> None:
    for name, command in COMMANDS.items():
        tell(f"{f'{name} {command.argument}':<{_COLUMN}}{command.help}", _COLUMN)
    tell(_KEYS)


def _model(talk: Talk, name: str) -> None:
    wait = talk.load(target=name, draft=None) if name else ""
    session = talk.current.ready.session
    said = f"{session.pair.target.name}, {guessed_by(session)}"
    say("model", f"{said}; {wait}" if wait else said)


def _draft(talk: Talk, name: str) -> None:
    wait = talk.load(draft=name) if name else ""
    ready = talk.current.ready
    said = guessed_by(ready.session).removeprefix("drafts by ")
    if ready.settings.k == 0 and not ready.session.reason_off:
        said += ", /k is 0"
    say("draft", f"{said}; {wait}" if wait else said)


def _k(talk: Talk, text: str) -> None:
    current = talk.current
    if text:
        options = current.options.changed(draft_tokens=text)
        try:
            wanted = options.settings().k
        except UsageError:
            raise UsageError(f"/k is {text}, auto or 0 to 64 is wanted") from None
        current.retune(options, replace(current.ready.settings, k=wanted))
    k = current.ready.settings.k
    said = guessed_by(current.ready.session)
    say("k", f"{'auto' if k is None else k}, {said}")


def _temp(talk: Talk, text: str) -> None:
    current = talk.current
    settings = current.ready.settings
    if text:
        try:
            sampling = replace(settings.sampling, temperature=float(text))
        except (ValueError, UsageError):
            raise UsageError(f"/temp is {text}, a number of at least 0 is wanted") from None
        options = current.options.changed(temp=sampling.temperature)
        current.retune(options, replace(settings, sampling=sampling))
    say("temp", f"{current.ready.settings.sampling.temperature:g}")


def _system(talk: Talk, text: str) -> None:
    if text:
        talk.set_system(text)
    say("system", talk.system or "(none)")


def _reset(talk: Talk, _: str) -> None:
    talk.reset()
    say("reset", "what is said next begins a conversation")


def _undo(talk: Talk, _: str) -> None:
    say("undo", f"forgotten: {shortened(talk.undo().user, 60)}")


def _retry(talk: Talk, _: str) -> None:
    if talk.would_repeat:
        say("hint", "at temperature 0 the answer is the same; /temp sets another")
    talk.retry()


def _edit(talk: Talk, _: str) -> None:
    import click

    if not talk.turns:
        raise UsageError("nothing has been said yet")
    if not stdin_is_terminal():
        raise UsageError("/edit needs a terminal to open an editor on")
    try:
        text = click.edit(talk.turns[-1].user, extension=".md", require_save=True)
    except click.ClickException as error:
        raise SpecliError(error.format_message(), "$VISUAL or $EDITOR names an editor") from None
    if text is None or not text.strip():
        say("edit", "nothing was saved, nothing changes")
        return
    talk.undo()
    talk.ask(text.rstrip("\n"))


def _save(talk: Talk, name: str) -> None:
    path = _path(name) if name else Path(f"conversation-{talk.id}.md")
    whole = talk.whole()
    if not whole.turns:
        raise UsageError("nothing has been said yet")
    write_export(path, form_of(path)(whole))
    say("saved", str(path))


def _load(talk: Talk, name: str) -> None:
    path = _path(name)
    if path.suffix == ".json" or path.is_file():
        whole = _read(path)
        talk.go_on(whole)
    else:
        file = find(name)
        if file.stem == talk.id:
            raise UsageError(f"{talk.id} is this conversation")
        talk.go_on(*reopen(file))
        whole = talk.whole()
    n = len(whole.turns)
    say("loaded", f"{path if path.is_file() else talk.id}, {n} {'turn' if n == 1 else 'turns'}")
    show(whole)


def _read(path: Path) -> Conversation:
    text = read_text(path)
    if path.suffix == ".jsonl":  # as conversations are kept
        return replace(parse(text.encode(), str(path)), id="")
    return from_json(text, str(path))


def _copy(talk: Talk, _: str) -> None:
    answer = next((turn.answer for turn in reversed(talk.turns) if turn.answer), "")
    if not answer:
        raise UsageError("nothing has been answered yet")
    copy(answer)
    which = "" if talk.turns[-1].answer else " of the last answer that there is"
    say(
        "copied",
        f"{len(answer)} characters{which}, if this terminal lets programs do that (OSC 52)",
    )


def _file(talk: Talk, name: str) -> None:
    if name == "-":
        talk.attached.clear()
    if name in ("", "-"):
        names = ", ".join(path.name for path in talk.attached) or "(nothing)"
        say("attached", f"{names}{'; /file - takes it off' if talk.attached else ''}")
        return
    path, session = _path(name), talk.current.ready.session
    if path.is_file() and (size := path.stat().st_size) > _MOST_BYTES * session.n_ctx:
        raise UsageError(
            f"{path}: has {human_size(size)}, the context holds {session.n_ctx} tokens",
            "attach a part of it",
        )
    text = read_text(path)
    if not text.strip():
        raise UsageError(f"{path}: is empty")
    n = len(session.answerer.tokenizer.tokenize(text))
    if n >= session.n_ctx:
        raise UsageError(
            f"{path}: has {n} tokens, the context holds {session.n_ctx}",
            "--ctx sets a larger one; or attach a part of it",
        )
    talk.attached[path.resolve()] = f"{path.name}:\n\n{text.rstrip()}"  # once, as it is now
    say("attached", f"{path}, {n} tokens, to the next message")


def _stats(talk: Talk, _: str) -> None:
    if talk.last is None:
        say("stats", "nothing has been answered yet")
        return
    rows = in_words(talk.last.stats, talk.last.reason)
    width = max(map(len, rows))
    for name, value in rows.items():
        tell(f"{name:<{width}}  {value}", width + 2)


def _trace(talk: Talk, name: str) -> None:
    path = _path(name) if name else None
    check_trace(path)
    if path is None and not talk.page.save():
        say("trace", "no page is written; /trace FILE begins one")
    talk.page.end()
    if path:
        talk.page = TracePage(path, talk.current.ready)
        say("trace", f"{path} shows the answers from now on; /trace alone ends it")


def _exit(talk: Talk, _: str) -> None:
    raise Leave


def _path(text: str) -> Path:
    """Return a path as people type it, or drop it on a terminal, which may quote it."""
    if len(text) > 2 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return Path(text).expanduser()


_COLUMN = 16  # of /help
_MOST_BYTES = 32  # of a token, in any text worth reading
_KEYS = (
    "Alt-Enter begins a new line, Tab completes, Ctrl-R searches what was typed before. Ctrl-C"
    " stops an answer and clears a line; on an empty line it leaves, as Ctrl-D does. A blank before"
    " a slash makes the line a message."
)
COMMANDS: Mapping[str, Command] = {
    "/help": Command("", "", "show this", _help),
    "/model": Command("[NAME]", "model", "show the target, or load another", _model),
    "/draft": Command("[NAME]", "draft", "show what guesses, or let another guess", _draft),
    "/k": Command("[auto|N]", ("auto", "0", "2", "4", "8"), "guesses in a round", _k),
    "/temp": Command("[X]", ("0", "0.8", "1"), "temperature", _temp),
    "/system": Command("[TEXT]", "", "show or set the system message", _system),
    "/undo": Command("", "", "forget the last message and its answer", _undo),
    "/retry": Command("", "", "answer the last message again, with new draws", _retry),
    "/edit": Command("", "", "change the last message in $VISUAL or $EDITOR, answer that", _edit),
    "/file": Command("[PATH|-]", "file", "attach a text to the next message, or none", _file),
    "/save": Command("[FILE]", "file", "write all as Markdown, or as JSON (.json)", _save),
    "/load": Command("FILE|ID", "file", "go on with another conversation", _load),
    "/copy": Command("", "", "the last answer to the clipboard", _copy),
    "/stats": Command("", "", "statistics of the last answer", _stats),
    "/trace": Command("[FILE]", "file", "write a page of every round from now on", _trace),
    "/reset": Command("", "", "begin anew, with the same system message", _reset),
    "/exit": Command("", "", "leave, as Ctrl-D does", _exit),
}
