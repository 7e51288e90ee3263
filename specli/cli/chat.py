"""specli chat: a conversation."""

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import typer

from specli.cli.options import ModelOptions, with_model_options
from specli.cli.prompting import typed_lines
from specli.cli.run import decoded
from specli.cli.streams import say, say_error, tell
from specli.cli.structured import GrammarText, JsonSchema, read_grammar
from specli.cli.tracing import TraceFile, TracePage, check_trace, traced
from specli.errors import Interrupted, ModelError, SpecliError, TooLongError

if TYPE_CHECKING:
    from specli.chat import Done, Message
    from specli.cli.session import Ready

HELP = """\
/help            show this
/reset           forget the conversation, keep the system message
/stats           show the statistics of the last answer
/system [TEXT]   show or set the system message, from the next answer on
/exit            leave, as Ctrl-D does
Ctrl-C stops an answer and clears a line; on an empty line it leaves."""


@with_model_options
def chat(
    options: ModelOptions,
    json_schema: JsonSchema = None,
    grammar: GrammarText = None,
    trace: TraceFile = None,
) -> None:
    """Hold a conversation. Its past stays in memory: a turn costs only what is new in it.

    Without a terminal on stdin, each line of it is one message. The page of --trace shows all
    answers and is written after each.

    \b
    Example:
      specli chat -t llama-70b -d llama-1b --system "You are brief."
    """
    from specli.cli.session import load_session, stdin_is_terminal

    check_trace(trace)
    gbnf = read_grammar(json_schema, grammar)
    with (
        load_session(options, conversation=True, grammar=gbnf) as ready,
        traced(trace, ready) as page,
    ):
        talk, typed = Talk(ready, options, page), stdin_is_terminal()
        for line in typed_lines(ready) if typed else _piped_lines():
            if not talk.take(line):
                break
            if not typed and talk.interrupted:
                raise Interrupted("interrupted")
        if not typed and talk.error:
            raise typer.Exit(talk.error.exit_code)


class Talk:
    """The state of a conversation, and what the user can do to it."""

    def __init__(self, ready: "Ready", options: ModelOptions, page: TracePage) -> None:
        """Raise ModelError where the model cannot hold a conversation."""
        if ready.session.answerer.template is None:
            raise ModelError(
                f"{ready.session.pair.target.name} has no chat template",
                "give one with --chat-template FILE, or continue a text with specli run --raw",
            )
        self._ready = ready
        self._page = page
        self._max_tokens = options.max_tokens
        self._system = options.system or ""
        self._turns: list[Message] = []
        self._last: Done | None = None
        self.error: SpecliError | None = None  # the last one, for the exit code of a script
        self._commands: dict[str, Callable[[str], None]] = {
            "/help": lambda _: tell(HELP),
            "/reset": lambda _: self._turns.clear(),
            "/stats": lambda _: self._show_stats(),
            "/system": self._set_system,
        }

    def take(self, line: str) -> bool:
        """Take one line of the user; return whether the conversation goes on."""
        command, _, argument = line.strip().partition(" ")
        try:
            if command == "/exit":
                return False
            if command in self._commands:
                self._commands[command](argument.strip())
            elif command.startswith("/") and "/" not in command[1:]:
                say("error", f"no command is called {command}")
                say("hint", "/help lists them")
            elif command:
                self._answer(line)
        except TooLongError as error:
            self.error = error
            n_tokens, n_ctx = error.n_tokens, error.n_ctx
            say("error", f"that makes {n_tokens} tokens of conversation, the context holds {n_ctx}")
            say("hint", "/reset forgets it; a shorter message may do; --ctx sets a larger context")
        except SpecliError as error:
            self.error = error
            say_error(error)
        return True

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the last answer."""
        return self._last is not None and self._last.reason == "interrupted"

    def _answer(self, line: str) -> None:
        from specli.chat import Done, Message, Text

        turns = [*self._turns, Message("user", line)]
        system = [Message("system", self._system)] if self._system else []
        answer = ""
        with self._ready.interrupt.listening():
            events = self._ready.session.answerer.reply([*system, *turns], self._max_tokens)
            self._page.begin(line)
            for event in events:
                self._page.add(event)
                self._ready.output.event(event)
                if isinstance(event, Text):
                    answer += event.text
                elif isinstance(event, Done):
                    self._last = event
        self._page.save()
        if answer or not self.interrupted:
            self._turns = [*turns, Message("assistant", answer)]
        if self._last and self._last.reason == "context":
            say("warning", "the context is full; /reset forgets the conversation, --ctx holds more")

    def _show_stats(self) -> None:
        if self._last is None:
            say("stats", "nothing has been answered yet")
            return
        for name, value in self._last.stats.as_dict().items():
            tell(f"{name:>24}  {'-' if value is None else value}")

    def _set_system(self, text: str) -> None:
        self._system = text or self._system
        say("system", self._system or "(none)")


def _piped_lines() -> Iterator[str]:
    """Yield the lines of stdin as they come, so that a program can hold a conversation."""
    for line in sys.stdin.buffer if sys.stdin else ():
        yield decoded(line).rstrip("\r\n")
