"""specli run: one answer."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from specli.cli.options import ModelOptions, with_model_options
from specli.cli.tracing import TraceFile, check_trace
from specli.errors import Interrupted, UsageError
from specli.settings import check_text

if TYPE_CHECKING:
    from specli.chat import AnswerEvent
    from specli.cli.session import Ready

Prompt: TypeAlias = Annotated[
    str | None, typer.Argument(help="What to answer. Text piped in is added to it.")
]
Raw: TypeAlias = Annotated[
    bool, typer.Option("--raw", help="Continue the text as it is, without the chat template.")
]


@with_model_options
def run(
    options: ModelOptions,
    prompt: Prompt = None,
    raw: Raw = False,
    trace: TraceFile = None,
) -> None:
    """Answer one prompt, and stream the answer to stdout.

    \b
    Examples:
      specli run "Why is the sky blue?"
      git diff | specli run "Write a commit message" -t qwen-coder-7b
      specli run "Count to ten" --trace rounds.html
    """
    from specli.chat import Done
    from specli.cli.session import load_session
    from specli.cli.tracing import traced

    text = read_prompt(prompt)
    check_trace(trace)
    with load_session(options) as ready, traced(trace, ready) as page:
        events = answer(ready, options, text, raw)
        page.begin(text)
        with ready.interrupt.listening():
            for event in events:
                page.add(event)
                ready.output.event(event)
        if isinstance(event, Done) and event.reason == "interrupted":
            raise Interrupted("interrupted")


def answer(ready: "Ready", options: ModelOptions, text: str, raw: bool) -> "Iterator[AnswerEvent]":
    """Return the events of an answer to a text; raw: without the chat template."""
    from specli.chat import Message

    answerer = ready.session.answerer
    if raw:
        return answerer.complete(text, options.max_tokens)
    system = [Message("system", options.system)] if options.system else []
    return answerer.reply([*system, Message("user", text)], options.max_tokens)


def read_prompt(prompt: str | None) -> str:
    """Join the argument and stdin by a blank line. Raises UsageError if both are empty."""
    parts = [prompt or "", "" if sys.stdin is None or sys.stdin.isatty() else read_stdin()]
    text = "\n\n".join(part for part in parts if part.strip())
    if not text:
        raise UsageError(
            "no prompt: the argument and stdin are empty",
            'specli run "Why is the sky blue?" asks once, specli chat holds a conversation',
        )
    check_text("the prompt", text)
    return text


def read_stdin() -> str:
    """Read all of stdin. Raises UsageError where it is not UTF-8."""
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        raise UsageError(f"stdin cannot be read: {error.strerror or error}") from None
    return decoded(data)


def decoded(data: bytes) -> str:
    """Return bytes of stdin as text. Raises UsageError where they are not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"stdin is not valid UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            "convert it first, for example with iconv -f latin1 -t utf-8",
        ) from None
