"""The page of a benchmark: its verdict, its plots, and the numbers behind them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from specli.bench.contest import PLAIN
from specli.bench.curves import (
    Plot,
    by_k,
    costs,
    draft_costs,
    gains,
    name_of,
    pass_costs,
    positions,
    throughput,
)
from specli.bench.noise import percent
from specli.bench.plots import inline_svg
from specli.bench.records import ModelFile, Records, Run, Setup
from specli.bench.summary import (
    Advice,
    Line,
    Way,
    advise,
    first_way,
    gain,
    lines,
    temperatures,
    time_split,
    verdict,
    ways,
)
from specli.errors import UsageError
from specli.pages.render import render
from specli.text import human_size

_WAYS = 4  # most that are drawn beside each other


@dataclass(frozen=True, slots=True)
class Drawn:
    """A plot as the page shows it: drawn, and as a table."""

    plot: Plot
    svg: str
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class Part:
    """What ran at one temperature. verdict, lines: of the way that is shown first."""

    temperature: float
    verdict: str
    lines: list[Line]
    others: list[Line]
    plots: list[Drawn]


def plots_of(records: Records) -> list[Plot]:
    """Return all plots of a benchmark; their slugs say at which temperature, where there are more.

    Raises UsageError where nothing compares.
    """
    runs, advice = _checked(records)
    found = []
    several = len(temperatures(runs)) > 1
    for temperature in temperatures(runs):
        for plot in _plots(records, runs, temperature, advice):
            slug = f"{plot.slug}-t{temperature:g}" if several else plot.slug
            found.append(replace(plot, slug=slug))
    passes = costs(pass_costs(records.passes()))
    return [*found, *([passes] if passes else [])]


def bench_page(records: Records, name: str) -> str:
    """Return the page of a benchmark. name: of its records. Raises UsageError, SpecliError."""
    runs, advice = _checked(records)
    setup = records.setup
    several = len({way.draft for way in ways(runs)}) > 1
    counter = iter(range(1, 1000))

    def drawn(plot: Plot) -> Drawn:
        return Drawn(plot, inline_svg(plot, f"p{next(counter)}-"), *_table(plot))

    parts = [_part(records, runs, t, advice, drawn) for t in temperatures(runs)]
    parts = [part for part in parts if part.lines]
    passes = costs(pass_costs(records.passes()))
    some = [line for part in parts for line in (*part.lines, *part.others)]
    splits = {
        name_of(way, several): time_split(run for run in runs if _way(run) == way)
        for way in _few(some, first_way(some, advice))
    }
    return render(
        "bench.html",
        name=name,
        title=_title(advice),
        gained=f"{advice.gain:.2f} times as fast",
        varies=percent(advice.bound),
        way=name_of(advice.way, several) if advice.way else "",
        parts=parts,
        passes=drawn(passes) if passes else None,
        splits=splits,
        memory=list(_memory(setup)) if setup else [],
        facts=list(_facts(setup, runs)) if setup else [],
        command=setup.command if setup else "",
        n_setups=len(records.setups),
        shown=lambda way: name_of(way, several),
        chance=percent,
    )


def _checked(records: Records) -> tuple[list[Run], Advice]:
    runs = list(records.runs())
    advice = advise(runs)
    if advice is None:
        raise UsageError(
            "no prompt was answered by plain and by speculative decoding: nothing to compare",
            "records of specli bench are wanted",
        )
    return runs, advice


def _part(
    records: Records,
    runs: Sequence[Run],
    temperature: float,
    advice: Advice,
    drawn: Callable[[Plot], Drawn],
) -> Part:
    some = lines(runs, temperature)
    if not some:
        return Part(temperature, "", [], [], [])
    first = first_way(some, advice)
    of_first = [line for line in some if line.way == first]
    return Part(
        temperature,
        f"{verdict(of_first)}.",
        of_first,
        [line for line in some if line.way != first],
        [drawn(plot) for plot in _plots(records, runs, temperature, advice)],
    )


def _plots(
    records: Records, runs: Sequence[Run], temperature: float, advice: Advice
) -> Iterator[Plot]:
    """Yield the plots of one temperature."""
    some = lines(runs, temperature)
    if not some:
        return
    here = [run for run in runs if run.temperature == temperature]
    few = _few(some, first_way(some, advice))
    yield throughput([line for line in some if line.way in few])
    for draft in dict.fromkeys(way.draft for way in ways(here)):
        plot = by_k(here, draft)
        if plot:
            yield plot
    guessing = [line for line in some if line.acceptance is not None]
    if not guessing:
        return
    several = len({way.draft for way in ways(runs)}) > 1
    few = _few(guessing, first_way(guessing, advice))
    prices = pass_costs(records.passes()), draft_costs(records.passes())
    found = (
        positions(here, first_way(guessing, advice), several),
        gains([run for run in here if _way(run) in few], guessing, *prices),
    )
    yield from (plot for plot in found if plot)


def _few(some: Sequence[Line], first: Way) -> list[Way]:
    """Return the ways that are drawn together: the first, auto of each draft, then the best."""
    found = list(dict.fromkeys(line.way for line in some))
    gained = {way: gain(line for line in some if line.way == way) for way in found}
    order = sorted(found, key=lambda w: (w != first, w.contestant != "auto", -gained[w]))
    chosen = order[:_WAYS]
    return [way for way in found if way in chosen]


def _way(run: Run) -> Way:
    return Way(run.draft, run.contestant)


def _table(plot: Plot) -> tuple[list[str], list[list[str]]]:
    """Return a plot's numbers as a head and rows: of curves with many points every tenth."""

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.{plot.digits}f}"

    points = [series for series in plot.series if series.style == "points"]
    if points:
        head = ["", plot.x_label, plot.y_label]
        rows = [
            [series.name, f"{x:.0f}", number(y)]
            for series in plot.series
            for x, y in list(zip(series.x, series.y, strict=True))[
                :: 1 if series.style == "points" else 4
            ]
        ]
        return head, rows
    head = [plot.x_label, *(series.name for series in plot.series)]
    rows = []
    for i, x in enumerate(plot.series[0].x):
        if label := plot.ticks[i] if plot.ticks else f"{x:g}":
            rows.append([label, *(number(series.y[i]) for series in plot.series)])
    return head, rows


def _title(advice: Advice) -> str:
    if advice.verdict == "slower":
        return "Slower here"
    return "Worth it here" if advice.way else "No clear difference here"


def _facts(setup: Setup, runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """Yield what was run on what: name and value."""
    yield "machine", f"{setup.cpu}, {setup.n_cores} cores, {setup.n_threads} threads"
    if setup.devices:
        yield "devices", ", ".join(setup.devices)
    if setup.driver:
        yield "driver", setup.driver
    if setup.memory_bytes:
        yield "memory", human_size(setup.memory_bytes)
    if setup.system:
        yield "system", setup.system
    yield "llama.cpp", f"{setup.llama}; {setup.backend}" if setup.backend else setup.llama
    yield "specli", f"{setup.specli} {setup.commit}".strip()
    if setup.date:
        yield "begun", setup.date
    for role, file in (("target", setup.target), *(("draft", d) for d in setup.drafts)):
        digest = f", SHA-256 {file.sha256}" if file.sha256 else ""
        about = f", {file.description}" if file.description else ""
        yield role, f"{file.name}, {human_size(file.size_bytes)}{about}{digest}"
    n_prompts = len({run.prompt_sha256 for run in runs})
    n_plain = sum(run.contestant == PLAIN.name for run in runs)
    yield "runs", f"{len(runs)} of {n_prompts} prompts, {n_plain} of them plain"
    yield "tokens", f"up to {max(run.max_tokens for run in runs)} in an answer"
    for key, value in setup.settings.items():
        if isinstance(value, dict):
            value = ", ".join(f"{name} {one}" for name, one in value.items())
        if value not in (None, "", [], ()):
            yield key.replace("_", " "), str(value)


def _memory(setup: Setup) -> Iterator[tuple[str, list[str]]]:
    def row(file: ModelFile) -> tuple[str, list[str]]:
        sizes = file.weights_bytes, file.cache_bytes, file.compute_bytes
        return file.label or file.name, [human_size(size) if size else "-" for size in sizes]

    yield from map(row, (setup.target, *setup.drafts))
