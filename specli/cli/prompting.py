"""What is typed at the prompt of a conversation: keys, history, completion."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from specli.cli.streams import say, tell

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings

    from specli.cli.completion import Argument
    from specli.cli.session import Ready


def typed_lines(
    ready: "Ready", words: "Mapping[str, Argument]" = MappingProxyType({})
) -> Iterator[str]:
    """Yield what is typed at the prompt. words: commands and the kinds of their arguments.

    Ctrl-D ends it. Ctrl-C clears the line, and raises KeyboardInterrupt where it is empty.
    """
    session = _session(words)
    name, method = ready.session.pair.target.name, ready.session.method
    tell(f"{name}, drafts by {method}. /help lists commands, Ctrl-D leaves.")
    try:
        while True:
            line = session.prompt(prompt_continuation="  ")
            _brackets_pastes(
                session, True
            )  # also what is pasted while an answer comes is one message
            yield line
    except EOFError:
        return
    finally:
        _brackets_pastes(session, False)


def _session(words: "Mapping[str, Argument]") -> "PromptSession[str]":
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    from specli.cli.completion import CommandCompleter

    return PromptSession(
        "> ",
        multiline=True,
        history=_history(),
        key_bindings=_keys(),
        completer=CommandCompleter(words),
        complete_while_typing=False,
        output=create_output(stdout=sys.stderr, always_prefer_tty=True),
    )


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

    @keys.add("c-c", filter=at_prompt)
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys


def _brackets_pastes(session: "PromptSession[str]", wanted: bool) -> None:
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
        with path.open("a"):
            return FileHistory(path)
    except OSError as error:
        say("warning", f"{path}: no history is kept: {error.strerror or error}")
        return InMemoryHistory()
