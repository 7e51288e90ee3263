"""specli verify: whether speculation changes anything here."""

from pathlib import Path
from typing import Annotated, Any

import typer

from specli.cli.options import ModelOptions, with_model_options


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Verification", **more)


@with_model_options
def verify(
    options: ModelOptions,
    quick: Annotated[
        bool, _option("--quick", help="A quarter of it: less is found, in less time.")
    ] = False,
    prompts: Annotated[
        Path | None,
        _option(
            "--prompts",
            metavar="FILE.jsonl",
            help='Your own: lines of {"id": ..., "category": ..., "text": ...}.',
        ),
    ] = None,
    per_category: Annotated[
        int | None,
        _option(
            "--per-category",
            min=1,
            help="Prompts of each category.",
            show_default="3, or all of --prompts",
        ),
    ] = None,
    draws: Annotated[
        int | None,
        _option(
            "--draws",
            min=0,
            help="Answers drawn with --temp, of each kind; 0 for none.",
            show_default="600",
        ),
    ] = None,
    raw: Annotated[
        bool, _option("--raw", help="Continue the prompts as they are, without the chat template.")
    ] = False,
) -> None:
    """Show that speculation changes nothing: plain and speculative decoding, side by side.

    At temperature 0 the answers to some prompts must be the same, token by token, but for ties that
    rounding decides. At the temperature of --temp many short answers are drawn both ways, and
    tests look for a difference of their distributions. Exits with 1 where something is found.

    \b
    Examples:
      specli verify --quick
      specli verify -t llama-8b -d llama-1b -k 5 --temp 1 --json
    """
    from specli.cli.verify_run import Wanted, run_verification

    run_verification(options, Wanted(quick, prompts, per_category, draws, raw))
