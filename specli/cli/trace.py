"""specli trace: the rounds of one answer, made to be looked at."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specli.cli.options import ModelOptions, with_model_options
from specli.cli.run import Prompt, Raw, answer, read_prompt
from specli.cli.streams import tell, write
from specli.cli.tracing import check_trace, new_tracer
from specli.errors import Interrupted

if TYPE_CHECKING:
    from specli.cli.session import Ready
    from specli.trace import Tracer


_STEM = "specli-trace"


@with_model_options
def trace(
    options: ModelOptions,
    prompt: Prompt = None,
    raw: Raw = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE.html",
            help="Where the page goes.",
            show_default="specli-trace.html here, with a number where that exists",
            rich_help_panel="Output",
        ),
    ] = None,
) -> None:
    """Answer one prompt, and write a page that shows how: each round with its guesses and verdicts.

    The page is one file for a browser, and needs no network. stdout has its path. With --json
    stdout has what the page is made of, as one JSON object, and --out alone asks for a page.

    \b
    Examples:
      specli trace "Why is the sky blue?" -n 200
      specli trace "Count to ten" -t llama-8b -d llama-1b --out rounds.html
    """
    from specli.cli.session import load_session
    from specli.pages.files import free_name, write_free, write_page
    from specli.pages.trace_page import trace_page

    text = read_prompt(prompt)
    path = out or (None if options.json else free_name(_STEM))
    check_trace(path)
    with load_session(replace(options, json=False)) as ready:
        tracer = new_tracer(ready)
        try:
            _listen(ready, options, tracer, text, raw)
        finally:
            found = tracer.trace()
            if path and found.answers:
                page = trace_page(found)
                if out:
                    write_page(out, page)
                else:
                    path = write_free(_STEM, page)
                if not options.json:
                    write(f"{path}\n")
            if options.json:
                write(json.dumps(found.as_dict(), ensure_ascii=False) + "\n")


def _listen(ready: "Ready", options: ModelOptions, tracer: "Tracer", text: str, raw: bool) -> None:
    """Let it answer, and say how far it is and what came out. Raises Interrupted."""
    from specli.chat import Done
    from specli.cli.output import stats_line
    from specli.cli.waiting import Waiting
    from specli.engine.types import Round

    n, most = 0, options.max_tokens or ready.session.n_ctx
    events = answer(ready, options, text, raw)
    tracer.begin(text)
    with ready.interrupt.listening(), closing(Waiting()) as waiting:
        for event in events:
            tracer.add(event)
            if isinstance(event, Round):
                n += len(event.tokens)
                waiting.show(f"answering: {n} tokens", n / most)
    if isinstance(event, Done):
        if options.stats:
            tell(stats_line(event.stats, ready.settings.k, event.reason))
        if event.reason == "interrupted":
            raise Interrupted("interrupted")
