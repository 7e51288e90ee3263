"""What is typed at the prompt of a conversation: keys, history."""

import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from specli.cli.streams import say, tell

if TYPE_CHECKING:
    from prompt_toolkit.history import History

    from specli.cli.session import Ready


def typed_lines(
    ready: "Ready", words: Mapping[str, str | tuple[str, ...]] = MappingProxyType({})
) -> Iterator[str]:
    """Yield what is typed at the prompt. words: commands and the kinds of their arguments.

    Ctrl-D ends it. Ctrl-C clears the line, and raises KeyboardInterrupt where it is empty.
    """
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import create_output

    keys = KeyBindings()

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    session: PromptSession[str] = PromptSession(
        "> ",
        history=_history(),
        key_bindings=keys,
        output=create_output(stdout=sys.stderr, always_prefer_tty=True),
    )
    name, method = ready.session.pair.target.name, ready.session.method
    tell(f"{name}, drafts by {method}. /help lists commands, Ctrl-D leaves.")
    while True:
        try:
            yield session.prompt()
        except EOFError:
            return


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
