"""specli run --batch: many prompts, one after the other, of models that are loaded once."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specli.cli.batch_file import Results, open_results
from specli.cli.options import ModelOptions
from specli.cli.streams import one_file, say
from specli.cli.structured import check_complete
from specli.errors import Interrupted, SpecliError, UsageError
from specli.settings import check_text

if TYPE_CHECKING:
    from specli.chat import AnswerEvent, Message
    from specli.cli.session import Ready


@dataclass(frozen=True, slots=True)
class Item:
    """A line of a batch. error: what is wrong with it, "" where nothing is."""

    id: Any
    messages: "tuple[Message, ...]" = ()
    max_tokens: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How the prompts of a batch are answered, and where the results go."""

    output: Path | None
    resume: bool
    raw: bool
    json_schema: str | None
    grammar: str


def check_shown(options: ModelOptions) -> None:
    """Raise UsageError for a flag that asks to see what no result holds; --json is what they are.

    Where such a thing was chosen for all commands, it was not meant for this one.
    """
    for name, flag, wanted in _SHOWN:
        origin = options.origins.get(name)
        if origin and origin.kind == "flag" and getattr(options, name) == wanted:
            raise UsageError(
                f"--batch cannot have {flag} beside it", "its results are lines of JSON, with stats"
            )


_SHOWN = (
    ("show_drafts", "--show-drafts", True),
    ("plain", "--plain", True),
    ("stats", "--stats", True),
    ("think", "--think show", "show"),
)


def run_batch(options: ModelOptions, data: bytes, how: BatchOptions) -> None:
    """Answer the prompts of JSON lines; write a result for each, in order.

    Raises UsageError where there is none, SpecliError at the end where some failed, Interrupted
    with the results so far written.
    """
    from specli.cli.session import load_session

    items = read_items(data, options.system or "")
    if not items:
        raise UsageError(
            "--batch: there is no prompt in it",
            'each line is one: {"id": "a", "prompt": "Why is the sky blue?"}',
        )
    _warn_of_twins(items)
    with open_results(how.output, how.resume, [item.id for item in items]) as results:
        if results.n_done < len(items):
            quiet = replace(options, json=False, stats=False)
            with (
                _told_of(results, len(items)),
                load_session(quiet, grammar=how.grammar) as ready,
                ready.interrupt.listening(),
            ):
                _answer_all(ready, items, options, how, results)
    if results.n_failed:
        raise SpecliError(
            f"{results.n_failed} of {len(items)} prompts failed",
            'the "error" of their results says why',
        )


@contextmanager
def _told_of(results: Results, n_items: int) -> Iterator[None]:
    """Say how far it came, where Ctrl-C ends a batch."""
    try:
        yield
    except (KeyboardInterrupt, Interrupted):
        more = "; --resume goes on" if results.file and results.n_done < n_items else ""
        say("warning", f"{results.n_done} of {n_items} prompts are answered{more}")
        raise


def _answer_all(
    ready: "Ready", items: list[Item], options: ModelOptions, how: BatchOptions, results: Results
) -> None:
    """Write the results that are missing."""
    from specli.cli.waiting import Waiting

    n_before = results.n_done
    with closing(Waiting()) as waiting:
        for n_done, item in enumerate(items[n_before:], n_before):
            if results.file or not one_file():  # else the results are what is to be seen
                share = (n_done - n_before) / (len(items) - n_before)
                waiting.show(f"{n_done} of {len(items)} answered", share)
            try:
                result = _answer(ready, item, options, how)
            except Interrupted:
                raise
            except SpecliError as error:
                result = {"error": error.message}
            results.add({"id": item.id, **result})


def _answer(ready: "Ready", item: Item, options: ModelOptions, how: BatchOptions) -> dict[str, Any]:
    """Return a result. Raises SpecliError where the prompt, or its answer, fails."""
    from specli.chat import Done, Text

    if item.error:
        raise UsageError(item.error)
    text = ""
    for event in _events(ready, item, options, how.raw):
        if isinstance(event, Text) and not event.thought:
            text += event.text
        elif isinstance(event, Done):
            if event.reason == "interrupted":
                raise Interrupted("interrupted")
            check_complete(text, event.reason, how.json_schema)
            return {"text": text, "reason": event.reason, "stats": event.stats.as_dict()}
    raise SpecliError("the answer did not end")


def _events(
    ready: "Ready", item: Item, options: ModelOptions, raw: bool
) -> "Iterator[AnswerEvent]":
    n = options.max_tokens if item.max_tokens is None else item.max_tokens
    if not raw:
        return ready.session.answerer.reply(item.messages, n)
    if [message.role for message in item.messages] != ["user"]:
        raise UsageError("with --raw, a line has a prompt and no messages, no system")
    return ready.session.answerer.complete(item.messages[0].content, n)


def read_items(data: bytes, system: str) -> list[Item]:
    """Return the prompts of JSON lines; of a bad line, what is wrong. system: the default."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [
        _item(line, number, system) for number, line in enumerate(lines, start=1) if line.strip()
    ]


def _item(line: bytes, number: int, system: str) -> Item:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return Item(number, error=f"line {number} is not valid JSON")
    if not isinstance(said, dict):
        return Item(number, error=f'line {number} is no object such as {{"prompt": "..."}}')
    name = said.get("id", number)
    try:
        _written(name)
    except ValueError:  # NaN, Infinity, half a surrogate pair: not in JSON, or not in UTF-8
        return Item(number, error=f"line {number}: its id cannot be written as JSON")
    try:
        return Item(name, _messages(said, system), _max_tokens(said))
    except UsageError as error:
        return Item(name, error=f"line {number}: {error.message}")


def _written(name: Any) -> bytes:
    """Return an ID as results have it. Raises ValueError."""
    return json.dumps(name, ensure_ascii=False, allow_nan=False).encode("utf-8")


def _warn_of_twins(items: list[Item]) -> None:
    """Say which prompts have the ID of another: their results can be told apart by order only."""
    names = Counter(_written(item.id) for item in items)
    if twins := [name.decode() for name, n in names.items() if n > 1]:
        more = f" and {len(twins) - 1} more" if len(twins) > 1 else ""
        say("warning", f"--batch: several lines have the id {twins[0]}{more}; order tells which")


def _max_tokens(said: dict[str, Any]) -> int | None:
    n = said.get("max_tokens")
    if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 0):
        raise UsageError(f"max_tokens is {n!r}, a number is wanted")
    return n


def _messages(said: dict[str, Any], system: str) -> "tuple[Message, ...]":
    from specli.chat import Message
    from specli.messages import read_messages, read_prompt

    system = said.get("system", system)
    if not isinstance(system, str):
        raise UsageError("system is no text")
    if ("prompt" in said) == ("messages" in said):
        raise UsageError("either prompt or messages is wanted")
    if "prompt" in said:
        check_text("prompt", said["prompt"])
        messages = read_prompt(said["prompt"])
    elif isinstance(said["messages"], list):
        messages = read_messages(said["messages"])
    else:
        raise UsageError("messages is no list")
    if system and messages[0].role != "system":
        messages.insert(0, Message("system", system))
    return tuple(messages)
