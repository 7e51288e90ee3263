"""What the runs of a benchmark say: medians and spreads, what is worth it, what to keep."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, inf
from statistics import median
from typing import Literal, TypeAlias

from specli.bench.contest import PLAIN, mean
from specli.bench.noise import Noise, pooled
from specli.bench.records import Run
from specli.engine.stats import count_positions

CLEAR = 1.03  # times as fast: what is nearer to 1 is called no difference, however certain
_SAME = 0.97  # of the best: of such, the first one run is recommended, auto before fixed k


Verdict: TypeAlias = Literal["faster", "slower", "unclear"]


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some numbers, the least and the greatest."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Way:
    """One way to speculate. draft: what guessed; contestant: auto or k=N."""

    draft: str
    contestant: str

    @property
    def k(self) -> str:
        """Return it as --draft-tokens has it."""
        return self.contestant.removeprefix("k=")


@dataclass(frozen=True, slots=True)
class Line:
    """One way beside plain decoding, in one category at one temperature.

    plain, speed: tokens per second. ratio: of the two, of the same prompt and repeat; n_pairs: how
    many such there are. bound: what its median would differ by at most if all were run again, 19
    times of 20, as a logarithm, going by how far the same prompts varied. acceptance: of guesses,
    None where there were none. mean_k: guesses in a round.
    """

    category: str
    way: Way
    plain: Spread
    speed: Spread
    ratio: Spread
    acceptance: float | None
    tokens_per_round: float
    mean_k: float
    n_pairs: int
    bound: float

    @property
    def verdict(self) -> Verdict:
        """Whether it is faster or slower beyond what varies: by itself, and between prompts."""
        low = min(self.ratio.low, self.ratio.median / exp(self.bound))
        high = max(self.ratio.high, self.ratio.median * exp(self.bound))
        return judge(self.ratio.median, low, high)


@dataclass(frozen=True, slots=True)
class Advice:
    """What to keep. best: the best way. gain: times as fast as plain decoding, over all runs.

    verdict: on the best way, which is not kept where it is not faster. bound: as of a Line.
    """

    best: Way
    gain: float
    verdict: Verdict
    bound: float

    @property
    def way(self) -> Way | None:
        """What is kept; None for plain decoding."""
        return self.best if self.verdict == "faster" else None


def judge(gain: float, low: float, high: float) -> Verdict:
    """Say whether a gain between low and high is one, or a loss."""
    if gain >= CLEAR and low > 1.0:
        return "faster"
    return "slower" if gain <= 1 / CLEAR and high < 1.0 else "unclear"


def spread(values: Iterable[float]) -> Spread:
    """Return median, least and greatest of at least one number."""
    some = list(values)
    return Spread(median(some), min(some), max(some))


def lines(runs: Sequence[Run], temperature: float) -> list[Line]:
    """Return each category with each way that ran beside plain decoding there."""
    here = [run for run in runs if run.temperature == temperature]
    noises = {way: _noise(_pairs(here, way)) for way in ways(here)}
    found = []
    for category in dict.fromkeys(run.category for run in here):
        of_category = [run for run in here if run.category == category]
        for way in ways(of_category):
            if pairs := _pairs(of_category, way):
                found.append(_line(category, way, pairs, noises[way]))
    return found


def ways(runs: Iterable[Run]) -> list[Way]:
    """Return the ways to speculate, in the order of the drafts, auto first."""
    found = dict.fromkeys(Way(r.draft, r.contestant) for r in runs if r.contestant != PLAIN.name)
    drafts = list(dict.fromkeys(way.draft for way in found))
    return sorted(found, key=lambda way: (drafts.index(way.draft), _order(way)))


def temperatures(runs: Iterable[Run]) -> list[float]:
    """Return the temperatures of some runs, rising."""
    return sorted({run.temperature for run in runs})


def gain(some: Iterable[Line]) -> float:
    """Return how many times as fast as plain decoding: the geometric mean over categories."""
    return mean(line.ratio.median for line in some)


def advise(runs: Sequence[Run]) -> Advice | None:
    """Return what to keep, over all temperatures and categories; None where nothing compares."""
    all_lines = [line for t in temperatures(runs) for line in lines(runs, t)]
    most = max((sum(line.way == way for line in all_lines) for way in ways(runs)), default=0)
    gains = {
        way: gain(line for line in all_lines if line.way == way)
        for way in ways(runs)
        if sum(line.way == way for line in all_lines) == most > 0
    }
    if not gains:
        return None
    best = max(gains.values())
    rated = [way for way in gains if gains[way] >= _SAME * best]
    way = min(rated, key=lambda way: way.contestant != "auto")
    pairs = _pairs(runs, way)
    bound = _noise(pairs).bound(len(pairs), len(pairs))
    said = judge(gains[way], gains[way] / exp(bound), gains[way] * exp(bound))
    return Advice(way, gains[way], said, bound)


def first_way(some: Sequence[Line], advice: Advice) -> Way:
    """Return the way to show first of some lines: the best of all, else the best here."""
    found = dict.fromkeys(line.way for line in some)
    if advice.best in found:
        return advice.best
    return max(found, key=lambda way: gain(line for line in some if line.way == way))


def verdict(some: Sequence[Line]) -> str:
    """Say in words where one way is worth it and where it is not. some: its lines."""
    faster, slower, others = (
        [line for line in some if line.verdict == said] for said in ("faster", "slower", "unclear")
    )
    parts = []
    if faster:
        parts.append(f"worth it for {_named(faster, ' times as fast')}")
    if slower:
        parts.append(f"slower for {_named(slower, ' times as fast')}")
    once = [line for line in others if line.bound == inf]
    if compared := [line for line in others if line.bound < inf]:
        parts.append(f"no clear difference for {_named(compared, ' times as fast')}")
    if once:
        told = "one run of each, so nothing is known of how far such numbers vary"
        parts.append(f"measured once: {_named(once, ' times as fast')}; {told}")
    return "; ".join(parts)


def at_positions(runs: Iterable[Run]) -> tuple[list[int], list[int]]:
    """Return how many guesses there were at each position of a round, and how many accepted."""
    drafted: list[int] = []
    accepted: list[int] = []
    for run in runs:
        for counts, ns in ((drafted, run.rounds.n_drafted), (accepted, run.rounds.n_accepted)):
            for n in ns:
                count_positions(counts, n)
    return drafted, accepted + [0] * (len(drafted) - len(accepted))


def by_position(runs: Iterable[Run]) -> list[float]:
    """Return which share of the guesses at each position of a round was accepted."""
    drafted, accepted = at_positions(runs)
    return [a / b for a, b in zip(accepted, drafted, strict=True)]


def time_split(runs: Iterable[Run]) -> dict[str, float]:
    """Return which share of the time the draft, the target and specli itself took."""
    total = dict.fromkeys(("draft", "target", "host"), 0.0)
    for run in runs:
        total["draft"] += sum(run.rounds.draft_s)
        total["target"] += sum(run.rounds.target_s)
        total["host"] += sum(run.rounds.host_s)
    whole = sum(total.values()) or 1.0
    return {name: seconds / whole for name, seconds in total.items()}


def joules_per_token(runs: Sequence[Run]) -> float | None:
    """Return the energy of a token; None where the machine does not tell."""
    if not runs or any(run.energy_j is None for run in runs):
        return None
    return sum(run.energy_j or 0.0 for run in runs) / sum(run.tokens for run in runs)


def _pairs(runs: Sequence[Run], way: Way) -> list[tuple[Run, Run]]:
    """Return the runs of a way, each with its plain one."""
    plain = {_key(run): run for run in runs if run.contestant == PLAIN.name}
    some = [run for run in runs if Way(run.draft, run.contestant) == way]
    return [(run, plain[_key(run)]) for run in some if _key(run) in plain]


def _noise(pairs: Sequence[tuple[Run, Run]]) -> Noise:
    """Return how far ratios of the same prompt vary or, where all ran once, of a category."""
    of_prompts: dict[tuple[object, ...], list[float]] = {}
    of_categories: dict[tuple[object, ...], list[float]] = {}
    for run, plain in pairs:
        ratio = run.speed / plain.speed
        of_prompts.setdefault((run.prompt_id, run.temperature), []).append(ratio)
        of_categories.setdefault((run.category, run.temperature), []).append(ratio)
    of_same = pooled(of_prompts.values())
    return of_same if of_same.n_free else pooled(of_categories.values())


def _line(category: str, way: Way, pairs: Sequence[tuple[Run, Run]], noise: Noise) -> Line:
    runs = [run for run, _ in pairs]
    n_rounds = sum(len(run.rounds.n_drafted) for run in runs)
    n_drafted = sum(sum(run.rounds.n_drafted) for run in runs)
    n_accepted = sum(sum(run.rounds.n_accepted) for run in runs)
    return Line(
        category,
        way,
        plain=spread(plain.speed for _, plain in pairs),
        speed=spread(run.speed for run in runs),
        ratio=spread(run.speed / plain.speed for run, plain in pairs),
        acceptance=n_accepted / n_drafted if n_drafted else None,
        tokens_per_round=sum(run.tokens for run in runs) / n_rounds if n_rounds else 0.0,
        mean_k=n_drafted / n_rounds if n_rounds else 0.0,
        n_pairs=len(pairs),
        bound=noise.bound(len(pairs), len(pairs)),
    )


def _key(run: Run) -> tuple[str, int, float]:
    return run.prompt_id, run.repeat, run.temperature


def _order(way: Way) -> int:
    return int(way.k) if way.k.isdecimal() else -1


def _named(some: Sequence[Line], unit: str) -> str:
    """Return the categories with their ratios: code (1.52 times as fast), chat (1.31) and edit."""
    words = [f"{line.category} ({line.ratio.median:.2f})" for line in some]
    words[0] = f"{some[0].category} ({some[0].ratio.median:.2f}{unit})"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
