"""specli run: one answer."""

import sys
from typing import Annotated

import typer

from specli.cli.options import ModelOptions, with_model_options
from specli.errors import Interrupted, UsageError
from specli.settings import check_text


@with_model_options
def run(
    options: ModelOptions,
    prompt: Annotated[
        str | None, typer.Argument(help="What to answer. Text piped in is added to it.")
    ] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Continue the text as it is, without the chat template."),
    ] = False,
) -> None:
    """Answer one prompt, and stream the answer to stdout.

    \b
    Examples:
      specli run "Why is the sky blue?"
      git diff | specli run "Write a commit message" -t qwen-coder-7b
    """
    from specli.chat import Done, Message
    from specli.cli.session import load_session

    text = read_prompt(prompt)
    with load_session(options) as ready:
        answerer, max_tokens = ready.session.answerer, options.max_tokens
        if raw:
            events = answerer.complete(text, max_tokens)
        else:
            system = [Message("system", options.system)] if options.system else []
            events = answerer.reply([*system, Message("user", text)], max_tokens)
        with ready.interrupt.listening():
            for event in events:
                ready.output.event(event)
        if isinstance(event, Done) and event.reason == "interrupted":
            raise Interrupted("interrupted")


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
