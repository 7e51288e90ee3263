"""specli chat: a conversation."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from specli.cli.known_words import chat_ids
from specli.cli.options import ModelOptions, with_model_options
from specli.cli.prompting import typed_lines
from specli.cli.run import decoded
from specli.cli.streams import say, say_error, tell
from specli.cli.structured import GrammarText, JsonSchema
from specli.cli.tracing import TraceFile, check_trace
from specli.errors import Interrupted, SpecliError, TooLongError, UsageError
from specli.structured import read_grammar
from specli.text import shortened

if TYPE_CHECKING:
    from specli.cli.talk import Talk
    from specli.conversation_files import Journal
    from specli.conversations import Conversation

    Kept: TypeAlias = tuple[Conversation, Journal]


class Full(str, Enum):  # noqa: UP042  # typer reads it
    """What happens at the end of the context."""

    stop = "stop"
    drop = "drop"


_KEPT = "Conversation"
Continue: TypeAlias = Annotated[
    bool, typer.Option("--continue", help="Go on with the latest one.", rich_help_panel=_KEPT)
]
Resume: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="ID",
        autocompletion=chat_ids,
        help="Go on with this one, or the beginning of its ID.",
        rich_help_panel=_KEPT,
    ),
]
Save: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--save/--no-save",
        help="Keep it in the data folder, as it goes.",
        show_default="where it is typed at a terminal, or resumed",
        rich_help_panel=_KEPT,
    ),
]
OverflowOption: TypeAlias = Annotated[
    Full,
    typer.Option(
        "--overflow",
        help="At the end of the context: stop, or drop the oldest turns, not the system message.",
        rich_help_panel=_KEPT,
    ),
]


@with_model_options
def chat(
    options: ModelOptions,
    continue_: Continue = False,
    resume: Resume = None,
    save: Save = None,
    overflow: OverflowOption = Full.stop,
    json_schema: JsonSchema = None,
    grammar: GrammarText = None,
    trace: TraceFile = None,
) -> None:
    """Hold a conversation. Its past stays in memory: a turn costs only what is new in it.

    What is typed at a terminal is kept as it goes, and can be resumed: with its models, system
    message and size of context, where no option says otherwise. Without a terminal on stdin, each
    line of it is one message, and nothing is kept unless --save is given or a conversation is
    resumed. The page of --trace shows all answers and is written after each. /help lists commands.

    \b
    Examples:
      specli chat -t llama-70b -d llama-1b --system "You are brief."
      specli chat --continue
    """
    from specli.cli.session import stdin_is_terminal

    check_trace(trace)
    typed = stdin_is_terminal()
    if continue_ and resume is not None:
        raise UsageError("--continue and --resume exclude each other")
    kept = _reopen(resume) if continue_ or resume is not None else None
    keep = save if save is not None else typed or kept is not None
    gbnf = read_grammar(json_schema, grammar)
    with _talk(options, gbnf, kept, keep, overflow, trace) as talk:
        error = _converse(talk, typed)
        if error and not typed:
            raise typer.Exit(error.exit_code)


@contextmanager
def _talk(
    options: ModelOptions,
    grammar: str,
    kept: "Kept | None",
    keep: bool,
    overflow: Full,
    trace: TraceFile,
) -> Iterator["Talk"]:
    """Load what answers and hold the conversation; at the end keep what there is to keep."""
    from specli.cli.current import Current
    from specli.cli.talk import Talk, show
    from specli.cli.tracing import TracePage

    if kept:
        options = _as_before(options, kept[0])
    with Current(options, grammar) as current:
        page = TracePage(trace, current.ready)
        system = options.system or ""
        talk = Talk(current, page, overflow.value, system, keep=keep)
        try:
            if kept:
                whole, journal = kept
                talk.go_on(whole, journal)
                show(whole)
                if system != whole.system:
                    talk.set_system(system)
                if current.references != {"target": whole.target, "draft": whole.draft}:
                    talk.note_models()
            yield talk
        finally:
            name = talk.leave()
            if name and sys.stdin and sys.stdin.isatty():
                tell(f"To go on: specli chat --resume {name}")
            talk.page.end()


def _converse(talk: "Talk", typed: bool) -> SpecliError | None:
    """Take lines until the user leaves; return the last error."""
    from specli.cli.commands import Leave, words

    last: SpecliError | None = None
    ready = talk.current.ready
    for line in typed_lines(ready, words()) if typed else _piped_lines():
        try:
            _take(talk, line)
        except Leave:
            break
        except TooLongError as error:
            last = error
            n_tokens, n_ctx = error.n_tokens, error.n_ctx
            say("error", f"that makes {n_tokens} tokens of conversation, the context holds {n_ctx}")
            say("hint", f"{talk.room_hint}; a shorter message may do")
        except Interrupted as error:
            if not typed:
                raise
            say("stopped", error.message)
        except SpecliError as error:
            last = error
            say_error(error)
        if not typed and talk.interrupted:
            raise Interrupted("interrupted")
    return last


def _take(talk: "Talk", line: str) -> None:
    """Answer a line, or obey it. Raises SpecliError, Leave."""
    from specli.cli.commands import is_command, obey

    if is_command(line):
        obey(talk, line)
    elif line.strip():
        talk.ask(line)


def _reopen(name: str | None) -> "Kept":
    """Return the conversation of this name, of None the latest, with its file."""
    from specli.conversation_files import find, latest, reopen

    path = latest() if name is None else find(name)
    if path is None:
        raise UsageError("there is no conversation to continue", "specli chat begins one")
    return reopen(path)


def _as_before(options: ModelOptions, whole: "Conversation") -> ModelOptions:
    """Fill in what a conversation was held with, where no option says otherwise, and say it."""
    given = {name for name in ("target", "draft", "system", "ctx") if options.is_given(name)}
    before: dict[str, Any] = {"system": whole.system}
    if "target" not in given or options.target == whole.target:
        n_ctx = whole.settings.get("n_ctx")
        before |= {"target": whole.target or None, "draft": whole.draft or None}
        before["ctx"] = n_ctx if isinstance(n_ctx, int) else None
    used = options.changed(**{name: before[name] for name in before.keys() - given})
    system = f", system: {shortened(used.system, 80)}" if used.system else ""
    draft = f" with {used.draft}" if used.draft else ""
    say("resumed", f"{whole.id} of {whole.changed[:10]}: {used.target}{draft}{system}")
    return used


def _piped_lines() -> Iterator[str]:
    """Yield the lines of stdin as they come, so that a program can hold a conversation."""
    for line in sys.stdin.buffer if sys.stdin else ():
        yield decoded(line).rstrip("\r\n")
