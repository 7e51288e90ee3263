"""Replay recorded answers in virtual time, or record them."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any, TypeVar

import numpy as np
import typer

from scripts.command import run
from scripts.virtual_time import GREEDY, Curves, Trace, least, seconds_in_session, seconds_of
from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.model import LlamaModel
from specli.bench.contest import mean
from specli.bench.measure import N_CTX, digest, render, rows_after, timed
from specli.bench.prompts import Prompt, load_prompts
from specli.bench.record_files import load
from specli.engine.costs import N_MAX
from specli.engine.sampler import LogitSampler, of_draft
from specli.engine.tempering import Tempering
from specli.errors import UsageError
from specli.files import read_text
from specli.loaded import load_draft
from specli.settings import Settings

FOLDER = Path(__file__).parent.parent / "docs/benchmarks"
TRACES, CURVES = FOLDER / "replay-traces.jsonl", FOLDER / "replay-curves.jsonl"
KS = 1, 2, 3, 4, 6, 8, 12, 16
_HEAD = "category", "auto / plain", "best k", "auto / best k", "share of the bound"
SIZES = *range(1, 9), 10, 12, 16, 20, 24, 32, 48, N_MAX
_N_TIMES, _BEFORE = 7, [0] * 200
_T = TypeVar("_T")


def main(
    traces: Annotated[
        Path, typer.Option(help="Answers, and what a draft guesses of them.")
    ] = TRACES,
    curves: Annotated[Path, typer.Option(help="What decodes cost, a machine a line.")] = CURVES,
    of: Annotated[
        Path | None, typer.Option(help="Records whose plain answers become traces.")
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option(help="The prompts of those records, where they are not our own.")
    ] = None,
    measure: Annotated[str, typer.Option(help="Measure a curve; its name.")] = "",
    target: Annotated[Path | None, typer.Option(help="The model that answered.")] = None,
    draft: Annotated[Path | None, typer.Option(help="The model that guesses.")] = None,
    threads: Annotated[int, typer.Option(min=1)] = 2,
) -> None:
    """Replay recorded answers in virtual time; with --of or --measure, record something first."""
    if (of or measure) and not (target and draft):
        raise UsageError("--target and --draft are wanted", "the pair that answered")
    if of and target and draft:
        found = recorded(of, load_prompts(prompts), target, draft, threads)
        lines = [json.dumps(asdict(trace)) for trace in found]
        traces.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if measure and target and draft:
        with curves.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(measured(measure, target, draft, threads))) + "\n")
    replayed = load_traces(traces)
    for machine in load_curves(curves):
        for temperature in sorted({trace.temperature for trace in replayed}):
            print(f"\n## {machine.name}, temperature {temperature:g}\n")
            some = [trace for trace in replayed if trace.temperature == temperature]
            print("\n".join(table(some, machine)))
            print(f"\nall in one session: {in_session(some, machine):.3f} times as fast")


def load_traces(path: Path = TRACES) -> list[Trace]:
    """Return the traces of a file. Raises UsageError."""
    return _load(
        path,
        lambda line: Trace(*(line[key] for key in _NAMES), *(tuple(line[key]) for key in _COLUMNS)),
    )


def load_curves(path: Path = CURVES) -> list[Curves]:
    """Return the curves of a file. Raises UsageError."""
    return _load(
        path,
        lambda line: Curves(
            line["name"], *({int(n): s for n, s in line[key].items()} for key in _KINDS)
        ),
    )


_NAMES = "prompt_id", "category", "temperature"
_COLUMNS = "prompt", "answer", "guesses", "confidences"
_KINDS = "target_s", "draft_s", "draft_rows_s"


def _load(path: Path, parse: Callable[[Any], _T]) -> list[_T]:
    found = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        try:
            found.append(parse(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            hint = "files that --of or --measure wrote are wanted"
            raise UsageError(f"{path}, line {number}: cannot be replayed", hint) from None
    if not found:
        raise UsageError(f"{path}: is empty", "--of and --measure record something")
    return found


def table(traces: Iterable[Trace], curves: Curves) -> list[str]:
    """Return a table of what auto gains: a row for each category, and the geometric means."""
    by_category: dict[str, list[Trace]] = {}
    for trace in traces:
        by_category.setdefault(trace.category, []).append(trace)
    rows = {category: gains(some, curves) for category, some in by_category.items()}
    lines = [f"| {' | '.join(_HEAD)} |", "| --- " * len(_HEAD) + "|"]
    for category, (best, numbers) in rows.items():
        lines.append(_line(category, str(best), numbers))
    means = [
        mean(column) for column in zip(*(numbers for _, numbers in rows.values()), strict=True)
    ]
    return [*lines, _line("geometric mean", "", means)]


def _line(name: str, best: str, numbers: Sequence[float]) -> str:
    plain, fixed, bound = (f"{number:.3f}" for number in numbers)
    return f"| {name} | {plain} | {best} | {fixed} | {bound} |"


def gains(traces: Sequence[Trace], curves: Curves) -> tuple[int, tuple[float, float, float]]:
    """Return the best k, and how auto compares with plain decoding, with that k, with the bound."""
    fixed = {k: mean(seconds_of(trace, curves, k) for trace in traces) for k in KS}
    best = min(fixed, key=lambda k: fixed[k])
    auto = mean(seconds_of(trace, curves, None) for trace in traces)
    plain = mean(seconds_of(trace, curves, 0) for trace in traces)
    bound = mean(least(trace, curves) for trace in traces)
    return best, (plain / auto, fixed[best] / auto, bound / auto)


def in_session(traces: Sequence[Trace], curves: Curves) -> float:
    """Return how many times as fast auto is in one session as in one for each answer.

    The answers come by their kinds.
    """
    order = sorted(traces, key=lambda trace: trace.category)
    return mean(seconds_of(trace, curves, None) for trace in order) / mean(
        seconds_in_session(order, curves)
    )


def recorded(
    path: Path, prompts: Sequence[Prompt], target: Path, draft: Path, threads: int
) -> Iterator[Trace]:
    """Yield what a draft guesses of the plain answers in a file of records."""
    texts, rng = render(target, prompts), np.random.default_rng(1)
    with ExitStack() as stack:
        judge, guesser = _contexts(stack, target, draft, threads)
        vocabulary = stack.enter_context(LlamaModel(target, vocabulary_only=True)).vocabulary
        for done in load(path).runs():
            if not done.answer:
                continue
            if digest(texts.get(done.prompt_id, ("", 0))[0]) != done.prompt_sha256:
                what = f"{path}: the prompt {done.prompt_id} is unknown, or another"
                raise UsageError(what, "--prompts names a file of prompts")
            prompt = tuple(vocabulary.tokenize(texts[done.prompt_id][0]))
            tokens = [*prompt, *done.answer]
            judge.truncate(0)
            guesser.truncate(0)
            sampling = replace(GREEDY, temperature=done.temperature)
            q_of = LogitSampler(of_draft(sampling), vocabulary.n_tokens)
            if done.temperature:
                q_of.warm(done.temperature * Tempering().factor)
            p_of = LogitSampler(sampling, vocabulary.n_tokens)
            rows = (rows_after(model, tokens, len(prompt) - 1) for model in (guesser, judge))
            found = []
            for token, draft_row, row in zip(done.answer, *rows, strict=True):
                q = q_of.dist(draft_row[: vocabulary.n_tokens], tokens)
                best = int(q.weights.argmax())
                guess = int(q.ids[best])
                if done.temperature:
                    p = p_of.dist(row[: vocabulary.n_tokens], tokens)
                    is_right = rng.random() * p.prob(token) < q.prob(token)
                    guess = token if is_right else -1
                found.append((guess, round(float(q.weights[best]) / q.total, 4)))
            guesses, confidences = zip(*found, strict=True)
            columns = prompt, done.answer, guesses, confidences
            yield Trace(done.prompt_id, done.category, done.temperature, *columns)


def measured(name: str, target: Path, draft: Path, threads: int) -> Curves:
    """Return what decodes cost on this machine, all in turn; medians."""
    with ExitStack() as stack:
        answers, guesses = _contexts(stack, target, draft, threads)
        for model in (answers, guesses):
            model.decode(_BEFORE, 0)
        kinds = (answers, N_MAX), (guesses, 1), (guesses, N_MAX)
        taken: list[dict[int, list[float]]] = [{n: [] for n in SIZES} for _ in kinds]
        for _ in range(_N_TIMES):
            for n in SIZES:
                for times, (model, n_rows) in zip(taken, kinds, strict=True):
                    times[n].append(timed(model, _BEFORE, n, min(n, n_rows)))
    return Curves(name, *({n: round(median(s), 4) for n, s in times.items()} for times in taken))


def _contexts(
    stack: ExitStack, target: Path, draft: Path, threads: int
) -> tuple[LlamaContext, LlamaContext]:
    def context(model: LlamaModel) -> LlamaContext:
        room = ContextSettings(N_CTX, N_MAX, threads)
        return stack.enter_context(LlamaContext(stack.enter_context(model), room))

    return context(LlamaModel(target)), context(load_draft(draft, Settings(n_threads=threads)))


if __name__ == "__main__":
    sys.exit(run(main))
