"""What is typed at the prompt of a conversation: keys, history, completion."""

import sys
from codecs import lookup
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import TextIOWrapper
from types import MappingProxyType
from typing import TYPE_CHECKING

from specli.cli.interrupt import tidied
from specli.cli.keyboard import silence
from specli.cli.stats_words import guessed_by
from specli.cli.streams import say, tell
from specli.files import open_regular

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.output import Output

    from specli.cli.completion import Argument
    from specli.cli.session import Ready


def typed_lines(
    ready: "Ready", words: "Mapping[str, Argument]" = MappingProxyType({})
) -> Iterator[str]:
    """Yield what is typed at the prompt. words: commands and the kinds of their arguments.

    Ctrl-D ends it. Ctrl-C clears the line, and raises KeyboardInterrupt where it is empty.
    """
    session = _session(words)
    show_keys = silence()  # what is typed between two prompts, Enter included, is for the next one

    def leave() -> None:
        show_keys()
        _bracket_pastes(session, False)

    name = ready.session.pair.target.name
    tell(f"{name}, {guessed_by(ready.session)}. /help lists commands, Ctrl-D leaves.")
    try:
        with tidied(leave):
            while True:
                line = session.prompt(prompt_continuation="  ")
                _bracket_pastes(session, True)  # what is pasted into an answer is one message, too
                yield line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except EOFError:
        return
    finally:
        leave()


def _session(words: "Mapping[str, Argument]") -> "PromptSession[str]":
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import create_app_session

    from specli.cli.completion import CommandCompleter

    if isinstance(sys.stdin, TextIOWrapper) and lookup(sys.stdin.encoding).name == "ascii":
        sys.stdin.reconfigure(encoding="utf-8")  # what a keyboard sends that is not ASCII
    with create_app_session(output=_output()):
        return PromptSession(
            "> ",
            multiline=True,
            history=_history(),
            key_bindings=_keys(),
            completer=CommandCompleter(words),
            complete_while_typing=False,
            enable_suspend=True,
        )


def _output() -> "Output":
    """Return what draws the prompt on stderr."""
    from prompt_toolkit.output import create_output
    from prompt_toolkit.output.plain_text import PlainTextOutput
    from prompt_toolkit.utils import is_dumb_terminal

    if is_dumb_terminal():
        return PlainTextOutput(sys.stderr)
    return create_output(stdout=sys.stderr, always_prefer_tty=True)


def _keys() -> "KeyBindings":
    """Return the keys that differ from prompt_toolkit's, which are those of a shell."""
    from prompt_toolkit.enums import DEFAULT_BUFFER
    from prompt_toolkit.filters import has_focus
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()
    at_prompt = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=at_prompt)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=at_prompt)
    @keys.add("c-j", filter=at_prompt)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c", filter=at_prompt, eager=True)  # before the one of a dumb prompt
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys


def _bracket_pastes(session: "PromptSession[str]", wanted: bool) -> None:
    """Let the terminal mark what is pasted, or not."""
    with suppress(OSError, ValueError):
        if wanted:
            session.output.enable_bracketed_paste()
        else:
            session.output.disable_bracketed_paste()
        session.output.flush()


def _history() -> "History":
    """Return the history kept in a file, or in memory where the file cannot be written."""
    from platformdirs import user_state_path
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    path = user_state_path("specli") / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        open_regular(path).close()
        with path.open("a"):
            return FileHistory(path)
    except OSError as error:
        say("warning", f"{path}: no history is kept: {error.strerror or error}")
        return InMemoryHistory()
