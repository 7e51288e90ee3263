"""What a benchmark's plots show, as numbers: to be drawn, and to be read in a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import median
from typing import Literal, TypeAlias

from specli.bench.contest import PLAIN
from specli.bench.records import Passes, Run
from specli.bench.summary import Line, Spread, Way, at_positions, ways
from specli.bench.theory import Mix, mix, speed_up

Style: TypeAlias = Literal["bars", "line", "dashed", "points"]
LEAST = 8  # guesses at a position, for a share of them to be shown
_N_CURVE = 41


@dataclass(frozen=True, slots=True)
class Series:
    """A row of numbers with a name. y: None where there is none. spreads: of bars."""

    name: str
    style: Style
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    spreads: tuple[Spread | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot. slug: for names of files. ticks: names of x = 0, 1, ..., where x is no number.

    said: what to see in it. digits: behind the point, in its table. x_max: where the axis ends.
    """

    slug: str
    title: str
    said: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    ticks: tuple[str, ...] = ()
    digits: int = 1
    x_max: float | None = None


def throughput(some: Sequence[Line]) -> Plot:
    """Return tokens per second by category, of plain decoding and of each way."""
    categories = list(dict.fromkeys(line.category for line in some))
    shown = list(dict.fromkeys(line.way for line in some))
    several = len({way.draft for way in shown}) > 1
    plain = {line.category: line.plain for line in some}
    rows = [(PLAIN.name, [plain.get(category) for category in categories])]
    for way in shown:
        speeds = {line.category: line.speed for line in some if line.way == way}
        rows.append((name_of(way, several), [speeds.get(category) for category in categories]))
    return Plot(
        "throughput",
        "Throughput by kind of text",
        "Medians; the whiskers reach from the slowest to the fastest run.",
        "",
        "tokens per second",
        tuple(
            Series(
                *(name, "bars", tuple(range(len(categories)))),
                tuple(one.median if one else None for one in spreads),
                tuple(spreads),
            )
            for name, spreads in rows
        ),
        tuple(categories),
    )


def by_k(runs: Sequence[Run], draft: str) -> Plot | None:
    """Return tokens per second by guesses in a round; None where fewer than two k were run."""
    found = [run for run in runs if run.draft == draft or run.contestant == PLAIN.name]
    fixed = sorted({run.k for run in found if run.k})
    if len(fixed) < 2:
        return None
    keys: list[tuple[str, int | None]] = [("0", 0), *((str(k), k) for k in fixed)]
    if any(run.k is None for run in found):
        keys += [("", -1), ("auto", None)]  # with a gap before it: it is no larger number
    series = []
    for category in dict.fromkeys(_categories(found)):
        of_category = [run for run in found if run.category == category]
        speeds = [[run.speed for run in of_category if run.k == k] for _, k in keys]
        y = tuple(median(some) if some else None for some in speeds)
        series.append(Series(category, "line", tuple(range(len(keys))), y))
    return Plot(
        f"by-k-{_slug(draft)}",
        f"Throughput by guesses in a round, {draft}",
        "0 is plain decoding; auto guesses as many as pay.",
        "guesses in a round (k)",
        "tokens per second",
        tuple(series),
        tuple(name for name, _ in keys),
    )


def pass_costs(passes: Sequence[Passes]) -> dict[int, float]:
    """Return seconds of a pass by its number of tokens, medians of all that was measured."""
    sizes = set[int].intersection(*(set(some.target_s) for some in passes)) if passes else set()
    return {n: median(some.target_s[n] for some in passes) for n in sorted(sizes)}


def draft_costs(passes: Sequence[Passes]) -> dict[str, float]:
    """Return seconds of a guess by draft."""
    drafts = dict.fromkeys(some.draft for some in passes)
    return {d: median(some.draft_s for some in passes if some.draft == d) for d in drafts}


def costs(target_s: Mapping[int, float]) -> Plot | None:
    """Return T(n) beside the two ideals; None where it was not measured."""
    if 1 not in target_s or len(target_s) < 2:
        return None
    n = tuple(float(size) for size in target_s)
    one = target_s[1] * 1000
    measured = tuple(value * 1000 for value in target_s.values())
    top = 1.15 * max(measured)
    return Plot(
        "passes",
        "What a pass over n tokens costs, T(n)",
        f"Were memory all that counts, a pass over {n[-1]:g} tokens would cost what one costs;"
        f" it costs {measured[-1] / one:.1f} times as much. Above n T(1) nothing can be gained.",
        "tokens in one pass (n)",
        "milliseconds",
        (
            Series("measured", "line", n, measured),
            Series("ideal: T(1)", "dashed", n, (one,) * len(n)),
            Series("one by one: n T(1)", "dashed", n, tuple(_cut(one * i, top) for i in n)),
        ),
    )


def positions(runs: Sequence[Run], way: Way, several: bool) -> Plot | None:
    """Return which share of the guesses at each position of a round was accepted, by category."""
    of_way = [run for run in runs if Way(run.draft, run.contestant) == way]
    groups = {c: [r for r in of_way if r.category == c] for c in dict.fromkeys(_categories(of_way))}
    rates = {category: _rates(some) for category, some in groups.items()}
    longest = max((len(some) for some in rates.values()), default=0)
    if not longest:
        return None
    x = tuple(float(i + 1) for i in range(longest))
    return Plot(
        "positions",
        f"Acceptance by position, {name_of(way, several)}",
        f"Of the guesses at position 1, 2, ... of a round; where there were fewer than {LEAST},"
        " nothing is shown.",
        "position in the round",
        "accepted, %",
        tuple(
            Series(
                *(name, "line", x),
                tuple(some[i] if i < len(some) else None for i in range(longest)),
            )
            for name, some in rates.items()
        ),
    )


def gains(
    runs: Sequence[Run],
    some: Sequence[Line],
    target_s: Mapping[int, float],
    draft_s: Mapping[str, float],
) -> Plot | None:
    """Return speed-up against acceptance, measured and by the formula, of each way.

    some: the lines of these runs. None where costs or guesses are missing.
    """
    if 1 not in target_s:
        return None
    shown = ways(runs)
    several = len({way.draft for way in shown}) > 1
    series = []
    for way in shown:
        name = name_of(way, several)
        of_way = [run for run in runs if Way(run.draft, run.contestant) == way]
        whole = mix(of_way)
        if whole is None:
            continue
        price = draft_s.get(way.draft, 0.0) * whole.drafted_share
        x = tuple(100 * i / (_N_CURVE - 1) for i in range(_N_CURVE))
        curve = tuple(speed_up(a / 100, whole.ks, price, target_s) for a in x)
        points = _points(of_way, [line for line in some if line.way == way])
        xs, ys = tuple(100 * m.a for m, _ in points), tuple(ratio for _, ratio in points)
        series.append(Series(name, "points", xs, ys))
        series.append(Series(f"formula, {name}", "dashed", x, curve))
    if not series:
        return None
    return Plot(
        "gains",
        "Speed-up against acceptance",
        "A point is one kind of text. The curves are (1 - a^(k+1)) / ((1 - a)(c k + v)), with the"
        " costs c and v as measured, over the numbers of guesses k that the rounds had. For a only"
        " those guesses count before which none was wrong.",
        "a guess is accepted, %",
        "times as fast as plain",
        (Series("plain decoding", "dashed", (0.0, 100.0), (1.0, 1.0)), *series),
        digits=2,
        x_max=100.0,
    )


def name_of(way: Way, several: bool) -> str:
    """Return how a way is called, with its draft where there are several."""
    return f"{way.draft}, {way.contestant}" if several else way.contestant


def _points(runs: Sequence[Run], some: Sequence[Line]) -> list[tuple[Mix, float]]:
    found = []
    for line in some:
        here = mix(run for run in runs if run.category == line.category)
        if here:
            found.append((here, line.ratio.median))
    return found


def _rates(runs: Iterable[Run]) -> list[float]:
    """Return shares in percent, up to the first position with too few guesses."""
    pairs = zip(*at_positions(runs), strict=True)
    return [100 * accepted / n for n, accepted in takewhile(lambda pair: pair[0] >= LEAST, pairs)]


def _categories(runs: Iterable[Run]) -> Iterable[str]:
    return (run.category for run in runs)


def _slug(name: str) -> str:
    """Return a name as part of a file's name."""
    return "".join(c if c.isalnum() else "-" for c in name)


def _cut(value: float, most: float) -> float | None:
    return value if value <= most else None
