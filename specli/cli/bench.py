"""specli bench: is speculation worth it here, and with which settings."""

from pathlib import Path
from typing import Annotated

import typer

from specli.cli.bench_compare import compare
from specli.cli.bench_report import report
from specli.cli.options import ModelOptions, with_model_options

bench = typer.Typer(name="bench", invoke_without_command=True, rich_markup_mode=None)
bench.command()(compare)
bench.command()(report)

_PANEL = "Benchmark"


@bench.callback()
@with_model_options
def bench_pair(
    options: ModelOptions,
    context: typer.Context,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run as much as fits into two minutes; say what was left out.",
            rich_help_panel=_PANEL,
        ),
    ] = False,
    drafts: Annotated[
        str | None,
        typer.Option(
            "--drafts",
            metavar="A,B,...",
            help="Compare these: models, ngram, and auto for what run would take.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    sweep_k: Annotated[
        bool,
        typer.Option(
            "--sweep-k",
            help="Compare 1, 2, 3, 4, 6, 8, 12 and 16 guesses in a round with auto.",
            rich_help_panel=_PANEL,
        ),
    ] = False,
    ks: Annotated[
        str | None,
        typer.Option(
            "--ks",
            metavar="K,K,...",
            help="Compare these numbers of guesses in a round with auto.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    temps: Annotated[
        str | None,
        typer.Option(
            "--temps",
            metavar="T,T,...",
            help="Temperatures to run at.",
            show_default="--temp",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(
            "--categories",
            metavar="C,C,...",
            help="Only these: code, chat, story, summarise, edit, extract.",
            show_default="all",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    prompts: Annotated[
        Path | None,
        typer.Option(
            "--prompts",
            metavar="FILE.jsonl",
            help='Your own: lines of {"id": ..., "category": ..., "text": ...}.',
            rich_help_panel=_PANEL,
        ),
    ] = None,
    per_category: Annotated[
        int | None,
        typer.Option(
            "--per-category",
            min=1,
            help="Prompts of each category.",
            show_default="2, or all of --prompts",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(
            "--repeat",
            min=1,
            help="Runs of each prompt.",
            show_default="3, or up to 6 with --quick",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            "--duration",
            metavar="MINUTES",
            help="Repeat until this time is over, instead.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where the records go.",
            show_default="a dated file in your data folder",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    save: Annotated[
        bool,
        typer.Option(
            "--save",
            help="Keep the best draft and k for this target in your config.toml.",
            rich_help_panel=_PANEL,
        ),
    ] = False,
) -> None:
    """Say whether speculation is worth it on this machine, for what, and with which settings.

    Plain and speculative decoding answer the same prompts in turn, each run cold. An answer has
    128 tokens where --max-tokens does not say otherwise, and the seed is 1. Ctrl-C keeps what is
    done. The records of all runs go to a file, with --json to stdout too.

    \b
    Examples:
      specli bench --quick
      specli bench -t llama-8b --drafts llama-1b,ngram --temps 0,1 --save
      specli bench compare before.jsonl after.jsonl
      specli bench report bench.jsonl
    """
    if context.invoked_subcommand is not None:
        return
    from specli.cli.bench_plan import Wanted
    from specli.cli.bench_run import run_bench

    wanted = Wanted(
        *(quick, drafts, sweep_k, ks, temps, categories, prompts, per_category, repeat, duration),
        *(out, save),
    )
    run_bench(options, wanted)
