"""specli run: one answer, or one to each prompt of a batch."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from specli.cli.attachments import fenced, read_attached
from specli.cli.options import ModelOptions, with_model_options
from specli.cli.streams import file_or_stdout, say
from specli.cli.structured import GrammarText, JsonSchema, check_complete
from specli.cli.tracing import TraceFile, check_trace
from specli.errors import Interrupted, UsageError
from specli.files import check_place, read_most, read_stream
from specli.settings import check_text
from specli.structured import read_grammar

if TYPE_CHECKING:
    from specli.chat import AnswerEvent
    from specli.cli.answer_file import AnswerFile
    from specli.cli.session import Ready

Prompt: TypeAlias = Annotated[
    str | None, typer.Argument(help="What to answer. Text piped in is added to it.")
]
Raw: TypeAlias = Annotated[
    bool, typer.Option("--raw", help="Continue the text as it is, without the chat template.")
]
Files: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--file", "-f", help="Put a text file before the prompt. Can be repeated."),
]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the answer to a file, whole or not at all."),
]
Quiet: TypeAlias = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Say nothing on stderr but what went wrong."),
]
Batch: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--batch",
        metavar="FILE|-",
        help='Answer each line, {"prompt": ...} or {"messages": [...]}, with a line of JSON.',
    ),
]
Resume: TypeAlias = Annotated[
    bool, typer.Option("--resume", help="Of a batch, answer what is missing in --output.")
]


@with_model_options
def run(
    options: ModelOptions,
    prompt: Prompt = None,
    raw: Raw = False,
    files: Files = None,
    json_schema: JsonSchema = None,
    grammar: GrammarText = None,
    output: Output = None,
    quiet: Quiet = False,
    batch: Batch = None,
    resume: Resume = False,
    trace: TraceFile = None,
) -> None:
    """Answer one prompt, and stream the answer to stdout.

    With --batch, answer many: each line of the file is a prompt, and may have an id, a system
    message and max_tokens of its own. What fails is a result with an error, and exit code 1.

    \b
    Examples:
      specli run "Why is the sky blue?"
      git diff | specli run "Write a commit message" -t qwen-coder-7b
      specli run "What does it do?" --file setup.py --output answer.md
      specli run "A fruit and its colour" --json-schema fruit.schema.json
      specli run --batch prompts.jsonl --output answers.jsonl --resume
    """
    output = file_or_stdout(output)
    with ExitStack() as stack:
        if quiet:  # what went wrong is said when this is over
            nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
            stack.enter_context(redirect_stderr(nowhere))
        if batch is None:
            if resume:
                raise UsageError("--resume is for --batch")
            _run_one(options, prompt, raw, files or [], json_schema, grammar, output, trace)
            return
        for value, name, hint in (
            (prompt, "a prompt", "put it into the lines"),
            (files, "--file", "put it into the lines"),
            (trace, "--trace", "a page shows the rounds of one answer"),
        ):
            if value:
                raise UsageError(f"--batch cannot have {name} beside it", hint)
        from specli.cli.batch import BatchOptions, check_shown, run_batch

        check_shown(options)
        gbnf = read_grammar(json_schema, grammar)
        how = BatchOptions(output, resume, raw, json_schema, gbnf)
        run_batch(options, _read_batch(batch), how)


def _run_one(
    options: ModelOptions,
    prompt: str | None,
    raw: bool,
    files: list[Path],
    json_schema: str | None,
    grammar: str | None,
    output: Path | None,
    trace: Path | None,
) -> None:
    from specli.chat import Done, Text
    from specli.cli.session import load_session
    from specli.cli.tracing import traced

    text = read_prompt(prompt, read_attached(files))
    check_trace(trace)
    if output is not None:
        if options.json:
            raise UsageError("--output holds the text of an answer, not --json", "use > FILE")
        check_place(output)
        if trace and output.resolve() == trace.resolve():
            raise UsageError(f"--output and --trace are both {output}", "name two files")
    gbnf, said = read_grammar(json_schema, grammar), ""
    file = None
    if output is not None:
        from specli.cli.answer_file import AnswerFile

        file = AnswerFile(output, options.stats)
    with (
        _told_of(file),
        load_session(options, grammar=gbnf) as ready,
        traced(trace, ready) as page,
    ):
        shown = file or ready.output
        if file:
            file.start(ready.session, ready.settings)
        events = answer(ready, options, text, raw)
        page.begin(text, ready)
        with ready.interrupt.listening():
            for event in events:
                page.add(event)
                if isinstance(event, Text) and not event.thought:
                    said += event.text
                if isinstance(event, Done) and output is not None:
                    check_complete(said, event.reason, json_schema)
                shown.event(event)
        if isinstance(event, Done):
            if event.reason == "interrupted":
                raise Interrupted("interrupted")
            check_complete(said, event.reason, json_schema)


@contextmanager
def _told_of(file: "AnswerFile | None") -> Iterator[None]:
    """Say that a file was not written, where Ctrl-C ends what should have been in it."""
    try:
        yield
    except (KeyboardInterrupt, Interrupted):
        if file and not file.is_written:
            say("warning", f"{file.path} was not written: the answer was interrupted")
        raise


def answer(ready: "Ready", options: ModelOptions, text: str, raw: bool) -> "Iterator[AnswerEvent]":
    """Return the events of an answer to a text; raw: without the chat template."""
    from specli.chat import Message

    answerer = ready.session.answerer
    if raw:
        if options.system and options.is_given("system"):
            say("hint", "--raw leaves out the system message")
        return answerer.complete(text, options.max_tokens)
    system = [Message("system", options.system)] if options.system else []
    return answerer.reply([*system, Message("user", text)], options.max_tokens)


def read_prompt(prompt: str | None, files: Sequence[tuple[Path, str]] = ()) -> str:
    """Join files, the argument and stdin by blank lines. Raises UsageError where all are empty."""
    piped = "" if sys.stdin is None or sys.stdin.isatty() else read_stdin()
    asked = [part for part in (prompt or "", piped) if part.strip()]
    if not asked and not any(text.strip() for _, text in files):
        places = "the argument, stdin and --file" if files else "the argument and stdin"
        raise UsageError(
            f"no prompt: {places} are empty",
            'specli run "Why is the sky blue?" asks once, specli chat holds a conversation',
        )
    for path, held in files:
        if not held.strip():
            say("warning", f"--file: {path} is empty")
    text = "\n\n".join([*(fenced(path, text) for path, text in files), *asked])
    check_text("the prompt", text)
    return text


def _read_batch(name: str) -> bytes:
    """Return the lines of a batch; -: of stdin. Raises UsageError."""
    try:
        if name == "-":
            return b"" if sys.stdin is None else read_stream(sys.stdin.buffer, "--batch: stdin")
        return read_most(Path(name))
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"--batch: {name} cannot be read: {said}") from None


def read_stdin() -> str:
    """Read all of stdin. Raises UsageError where it is not UTF-8."""
    try:
        data = read_stream(sys.stdin.buffer, "stdin")
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
