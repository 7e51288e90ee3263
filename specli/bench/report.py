"""The page of a benchmark, made of its records and nothing else."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import fmean, median

from specli.bench.clairvoyant import Costs, least_seconds
from specli.bench.contest import AUTO, FINALISTS, PLAIN, mean, ranking, speeds
from specli.bench.records import Foresight, Passes, Records, Run, Setup
from specli.errors import UsageError
from specli.text import human_size

_HEAD = (
    *("category", "plain t/s", "auto t/s", "auto / plain", "best k", "t/s", "auto / best k"),
    *("best peer", "t/s", "auto / peer", "bound / plain", "share of the bound"),
    *("share, by own decodes", "auto / plain, later", "auto / own plain rounds"),
)
_LATER = 64  # tokens after which auto has found out what its draft is worth
_N_PLAIN = 20  # rounds without guesses that tell what plain decoding takes


@dataclass(frozen=True, slots=True)
class Row:
    """One category at one temperature; what did not run is missing."""

    category: str
    plain: float | None
    auto: float | None
    fixed: tuple[str, float] | None
    peer: tuple[str, float] | None
    bound: float | None  # its gain over plain
    share: float | None  # how much of this gain auto has
    decoded: float | None  # its share of the bound, were decodes as dear as in auto's own runs
    later: float | None  # auto against plain after the first _LATER tokens
    own: float | None  # auto against what its own plain rounds take


def report(name: str, records: Records) -> str:
    """Return the page. Raises UsageError where nothing has run to the end yet."""
    runs = list(records.runs())
    if not runs or records.setup is None:
        raise UsageError(f"{name}: no runs are recorded yet")
    most = max(run.max_tokens for run in runs)
    final = [run for run in runs if run.max_tokens == most]
    costs = pooled([record for record in records.all if isinstance(record, Passes)])
    foresights = {
        r.prompt_id: r for r in records.all if isinstance(r, Foresight) and r.max_tokens == most
    }
    parts = [f"# {name}", *_setup(records.setup, runs, most)]
    for temperature in sorted({run.temperature for run in final}):
        here = [run for run in final if run.temperature == temperature]
        rows = [
            row(category, [run for run in here if run.category == category], costs, foresights)
            for category in dict.fromkeys(run.category for run in here)
        ]
        parts += [
            f"## Temperature {temperature:g}",
            _table(_HEAD, map(_cells, [*rows, total(rows)])),
        ]
        parts += ["Every contestant that answered all prompts, t/s:", _all(here)]
        if 0 < len(shared := answered_by_all(here)) < len(here):
            some = " and ".join(f"{n} {group}" for group, n in FINALISTS.items())
            told = f"The first prompt of each category told which settings did: the best {some}."
            parts += [f"{told} On that one, t/s:", _all(shared)]
    if costs:
        parts += ["## What a pass costs", _passes(costs)]
    return "\n\n".join(parts) + "\n"


def row(
    category: str, runs: Sequence[Run], costs: Costs | None, foresights: Mapping[str, Foresight]
) -> Row:
    """Return the row of runs of one category and temperature. foresights: by prompt."""
    found = speeds(runs)
    prompts = {run.prompt_id for run in runs}
    complete = [name for name in ranking(runs) if found[name].keys() == prompts]
    means = {name: mean(found[name].values()) for name in complete}

    def best(prefix: str) -> tuple[str, float] | None:
        return next(((n, means[n]) for n in complete if n.startswith(prefix)), None)

    plain, auto = means.get(PLAIN.name), means.get("auto")
    bound = share = decoded = None
    greedy = all(run.temperature == 0 for run in runs)
    if costs and greedy and prompts <= foresights.keys():
        bound = mean(gain(costs, foresights[prompt]) for prompt in prompts)
        share = auto / plain / bound if auto and plain else None
        decoded = _decoded(runs, costs, foresights)
    bests = best("k="), best("peer ")
    return Row(category, plain, auto, *bests, bound, share, decoded, _later(runs), _own(runs))


def _decoded(
    runs: Sequence[Run], costs: Costs, foresights: Mapping[str, Foresight]
) -> float | None:
    """Return the bound's seconds of a token over auto's, were decodes as dear as auto's own were.

    The target's of all sizes are as many times as dear as those that auto decoded. None where some
    prompt has no answer of auto, or none of which rounds are known.
    """
    passes = costs.envelope()
    shares: dict[str, list[float]] = {}
    for run in runs:
        if run.contestant == AUTO.name:
            rounds = list(zip(run.rounds.n_drafted, run.rounds.target_s, strict=False))  # or none
            if not rounds or min(seconds for _, seconds in rounds) <= 0.0:
                return None
            known_s = sum(passes[min(n, len(passes) - 1)] for n, _ in rounds)
            times = sum(seconds for _, seconds in rounds) / known_s
            dear = replace(costs, target_s={n: times * s for n, s in costs.target_s.items()})
            foresight = foresights[run.prompt_id]
            least = least_seconds(dear, foresight.model, foresight.ngram) / len(foresight.model)
            shares.setdefault(run.prompt_id, []).append(least * run.tokens / run.seconds)
    answered = shares.keys() == {run.prompt_id for run in runs}
    return mean(mean(some) for some in shares.values()) if answered else None


def _later(runs: Iterable[Run]) -> float | None:
    """Return what auto gains over plain decoding after the first tokens, by their rounds.

    Each answer is compared with the plain one of its seed; where one of them is short there is
    nothing to compare. None where that leaves a prompt with nothing.
    """
    rests: dict[str, dict[tuple[str, int, int], float]] = {PLAIN.name: {}, AUTO.name: {}}
    prompts = set()
    for run in runs:
        if run.contestant in rests:
            prompts.add(run.prompt_id)
            if rest := _rest(run):
                rests[run.contestant][run.prompt_id, run.seed, run.repeat] = rest.speed
    plain, auto = rests[PLAIN.name], rests[AUTO.name]
    gains: dict[str, list[float]] = {}
    for key in sorted(plain.keys() & auto.keys()):
        gains.setdefault(key[0], []).append(auto[key] / plain[key])
    if not gains or gains.keys() != prompts:
        return None
    return mean(mean(some) for some in gains.values())


def _rest(run: Run) -> Run | None:
    """Return a run without its first tokens; None where nothing is left, or known of rounds."""
    rounds = run.rounds
    before = list(accumulate(rounds.n_tokens, initial=0))
    at = bisect_left(before, _LATER)
    tokens = before[-1] - before[at] if at < len(before) else 0
    columns = rounds.draft_s, rounds.target_s, rounds.host_s
    seconds = sum(sum(column[at:]) for column in columns)
    return replace(run, tokens=tokens, seconds=seconds) if tokens else None


def _own(runs: Iterable[Run]) -> float | None:
    """Return what auto gains over decoding all tokens as in those rounds of it that were plain.

    Two runs meet a machine at two times; this compares within one. None where some run has too few.
    """
    gains: dict[str, list[float]] = {}
    for run in runs:
        if run.contestant == AUTO.name:
            r = run.rounds
            rounds = zip(r.n_drafted, r.draft_s, r.target_s, r.host_s, strict=False)  # or none
            plain = [t + h for n, draft_s, t, h in rounds if n == 0 and draft_s == 0.0]
            if len(plain) < _N_PLAIN:
                return None
            gains.setdefault(run.prompt_id, []).append(run.tokens * fmean(plain) / run.seconds)
    return mean(mean(some) for some in gains.values()) if gains else None


def total(rows: Sequence[Row]) -> Row:
    """Return the geometric means over the categories, of those columns that all of them have."""

    def over(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return mean(known) if known and len(known) == len(values) else None

    fixed, peer = (
        over([best[1] if best else None for best in column])
        for column in ([row.fixed for row in rows], [row.peer for row in rows])
    )
    return Row(
        "geometric mean",
        over([row.plain for row in rows]),
        over([row.auto for row in rows]),
        ("", fixed) if fixed else None,
        ("", peer) if peer else None,
        over([row.bound for row in rows]),
        over([row.share for row in rows]),
        over([row.decoded for row in rows]),
        over([row.later for row in rows]),
        over([row.own for row in rows]),
    )


def pooled(passes: Sequence[Passes]) -> Costs | None:
    """Return the median costs of all measurements of a run; None where there is none."""
    if not passes:
        return None
    sizes = set[int].intersection(*(set(some.target_s) for some in passes))
    return Costs(
        {n: median(some.target_s[n] for some in passes) for n in sorted(sizes)},
        median(some.draft_s for some in passes),
    )


def gain(costs: Costs, foresight: Foresight) -> float:
    """Return how many times as fast as plain decoding the bound is."""
    plain = len(foresight.model) * costs.target_s[1]
    return plain / least_seconds(costs, foresight.model, foresight.ngram)


def _setup(setup: Setup, runs: Sequence[Run], most: int) -> list[str]:
    n_prompts = len({run.prompt_id for run in runs if run.max_tokens == most})
    draft = ", ".join(f"{file.name} ({human_size(file.size_bytes)})" for file in setup.drafts)
    return [
        f"- Target: {setup.target.name} ({human_size(setup.target.size_bytes)})\n"
        f"- Draft: {draft}\n"
        f"- Machine: {setup.cpu}, {setup.n_cores} cores, {setup.n_threads} threads\n"
        f"- specli {setup.specli} ({setup.commit or 'no commit'}), {setup.llama}\n"
        f"- Peer: llama-speculative-simple {setup.peer or '(not run)'}\n"
        f"- {n_prompts} prompts, {most} tokens, no filters but the temperature",
        f"```\n{setup.command}\n```",
        "Each run loads its models anew and is timed from the end of the prompt to the last token."
        " A speed is the geometric mean over a category's prompts.",
        "The bound is the least time for the target's own greedy text when it is known beforehand"
        " how far each guess will be right, over the passes below. Its share is auto's gain over"
        " plain decoding divided by the bound's, so that a neighbour's load hits both;"
        " by own decodes: the bound's time over auto's, the target's passes being as much"
        " dearer or cheaper as those of auto's own rounds were."
        f" Later: of the rounds after the first {_LATER} tokens, by which a planner has learned."
        " Own plain rounds: how many times as fast auto is as if all tokens had taken what those of"
        " its rounds took that had no guesses, where each run has"
        f" {_N_PLAIN} of them: two runs meet a machine at two times.",
    ]


def _cells(row: Row) -> tuple[str, ...]:
    def ratio(other: float | None) -> str:
        return f"{row.auto / other:.2f}" if row.auto and other else "-"

    fixed, peer = row.fixed or ("-", None), row.peer or ("-", None)
    return (
        *(row.category, _speed(row.plain), _speed(row.auto), ratio(row.plain)),
        *(fixed[0], _speed(fixed[1]), ratio(fixed[1])),
        *(peer[0].removeprefix("peer "), _speed(peer[1]), ratio(peer[1])),
        *(_speed(row.bound), _speed(row.share), _speed(row.decoded)),
        *(_speed(row.later), _speed(row.own)),
    )


def _all(runs: Sequence[Run]) -> str:
    """Return the table of all contestants by category."""
    categories = list(dict.fromkeys(run.category for run in runs))
    by_category = {
        category: speeds(run for run in runs if run.category == category) for category in categories
    }
    n_prompts = {category: max(map(len, found.values())) for category, found in by_category.items()}

    def cell(name: str, category: str) -> str:
        found = by_category[category].get(name, {})
        return _speed(mean(found.values()) if len(found) == n_prompts[category] else None)

    names = sorted({run.contestant for run in runs}, key=_natural)
    lines = [(name, *(cell(name, category) for category in categories)) for name in names]
    return _table(("", *categories), [line for line in lines if set(line[1:]) != {"-"}])


def answered_by_all(runs: Sequence[Run]) -> list[Run]:
    """Return the runs on those prompts that all contestants of a category answered."""
    names: dict[str, set[str]] = {}
    answered: dict[str, set[str]] = {}
    for run in runs:
        names.setdefault(run.category, set()).add(run.contestant)
        answered.setdefault(run.prompt_id, set()).add(run.contestant)
    return [run for run in runs if answered[run.prompt_id] == names[run.category]]


def _natural(name: str) -> tuple[int, float, str]:
    """Sort plain, auto, the fixed by their k, the peer's settings."""
    if name in (PLAIN.name, "auto"):
        return (0, 0 if name == PLAIN.name else 1, "")
    number = name.removeprefix("k=")
    return (1, float(number), "") if number.isdecimal() else (2, 0, name)


def _passes(costs: Costs) -> str:
    one = costs.target_s[1]
    sizes = [n for n in costs.target_s if n <= 8 or n % 4 == 0]
    lines = [
        ("target, ms", *(f"{costs.target_s[n] * 1000:.0f}" for n in sizes)),
        ("of one row", *(f"{costs.target_s[n] / one:.2f}" for n in sizes)),
    ]
    table = _table(("rows", *map(str, sizes)), lines)
    return f"{table}\n\nOne guess of the draft: {costs.draft_s * 1000:.1f} ms."


def _speed(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, rule, *lines])
