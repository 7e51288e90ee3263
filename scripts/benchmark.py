"""Run specli beside llama.cpp's own tool, on the same files and prompts, and report."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import psutil
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from scripts.command import run
from specli.bench.contest import Contest, Plan, entries
from specli.bench.measure import N_CTX, Machine, render
from specli.bench.peer import peer_version
from specli.bench.prompts import load_prompts
from specli.bench.record_files import Recorder, load
from specli.bench.records import Records, Setup
from specli.bench.report import report
from specli.bench.setup import describe, model_file
from specli.errors import Interrupted, UsageError
from specli.models.registry import load_registry
from specli.models.store import locate
from specli.settings import Settings

ROOT = Path(__file__).parent.parent
CATEGORIES = "code,chat,story,edit,extract"


def main(
    target: Annotated[str, typer.Option(help="The model that answers.")] = "",
    draft: Annotated[str, typer.Option(help="The model that guesses.")] = "",
    temps: Annotated[str, typer.Option(help="Temperatures.")] = "0,1",
    categories: Annotated[str, typer.Option(help="Of prompts.")] = CATEGORIES,
    prompts: Annotated[Path | None, typer.Option(help="A JSONL file instead of our own.")] = None,
    prompts_per_category: Annotated[int, typer.Option(min=1)] = 3,
    tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an answer.")] = 200,
    threads: Annotated[int | None, typer.Option(min=1)] = None,
    peer: Annotated[Path | None, typer.Option(help="llama-speculative-simple.")] = None,
    ks: Annotated[str, typer.Option(help="Fixed numbers of guesses.")] = "1,2,3,4,6,8,12,16",
    only: Annotated[
        list[str] | None,
        typer.Option(help="Run only this: plain, auto, fixed, peer or one name. Can be repeated."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each on each prompt.")] = 1,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    full: Annotated[bool, typer.Option("--full", help="All settings answer all prompts.")] = False,
    abreast: Annotated[
        bool,
        typer.Option(
            "--abreast",
            help="Our own contestants answer each prompt side by side, some tokens in turn: a "
            "neighbour slows all alike. Each has models of its own in memory.",
        ),
    ] = False,
    out: Annotated[
        Path, typer.Option(help="The records; what stands in them is not run again.")
    ] = ROOT / "docs/benchmarks/benchmark.jsonl",
    report_of: Annotated[
        Path | None, typer.Option("--report", help="Only write the page of these records anew.")
    ] = None,
) -> None:
    """Run specli beside llama.cpp's own tool, on the same files and prompts, and report."""
    if report_of:
        write_report(report_of)
        return
    if not target or not draft:
        raise UsageError("--target and --draft are wanted", "or --report FILE alone")
    chosen = tuple(names(categories))
    plan = Plan(
        entries=entries([int(k) for k in numbers("--ks", ks)], peer is not None, only or []),
        prompts=tuple(load_prompts(prompts)),
        categories=chosen,
        temperatures=tuple(numbers("--temps", temps)),
        n_prompts=prompts_per_category,
        max_tokens=tokens,
        repeats=repeats,
        seed=seed,
        full=full,
        abreast=abreast,
    )
    unknown = set(chosen) - {prompt.category for prompt in plan.prompts}
    if unknown:
        raise UsageError(f"--categories: no prompt is of {', '.join(sorted(unknown))}")
    registry = load_registry()
    located = locate(target, registry)
    machine = Machine(
        target=located,
        draft=locate(draft, registry),
        peer=peer,
        n_threads=threads or psutil.cpu_count(logical=False) or 1,
        seed=seed,
        texts=render(located.path, plan.prompts),
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    found = load(out) if out.exists() else Records()
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(TextColumn("tokens,"), TimeRemainingColumn(), TextColumn("left")),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=plan.n_tokens())

        def on_run(what: str, n_done: int) -> None:
            bar.update(task, advance=n_done, description=what or None)

        try:
            recorder = Recorder(out, setup(machine))
            Contest(plan, machine, recorder, list(found.all), on_run).hold()
        except (KeyboardInterrupt, Interrupted):
            raise Interrupted("interrupted", "the same command goes on from here") from None
    write_report(out)


def setup(machine: Machine) -> Setup:
    """Describe this run; files by name only."""
    words = [Path(word).name if os.sep in word else word for word in sys.argv[1:]]
    return describe(
        model_file(machine.target),
        [model_file(machine.draft)],
        Settings(seed=machine.seed, n_threads=machine.n_threads, n_ctx=N_CTX),
        shlex.join(["scripts/benchmark", *words]),
        peer=peer_version(machine.peer) if machine.peer else "",
    )


def write_report(path: Path) -> None:
    """Write the page beside its records."""
    page = path.with_suffix(".md")
    page.write_text(report(path.stem, load(path)), encoding="utf-8")
    print(page)


def names(text: str) -> list[str]:
    """Return what stands between the commas of an option."""
    return [name.strip() for name in text.split(",") if name.strip()]


def numbers(option: str, text: str) -> list[float]:
    """Return the numbers of an option. Raises UsageError."""
    try:
        return [float(name) for name in names(text)]
    except ValueError:
        raise UsageError(f"{option} is {text}, numbers with commas between are wanted") from None


if __name__ == "__main__":
    sys.exit(run(main))
