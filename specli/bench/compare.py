"""Two benchmarks beside each other: what became faster, and what else is not the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log

from specli.bench.noise import Noise, pooled
from specli.bench.records import ModelFile, Records, Run, Setup
from specli.bench.summary import Spread, spread
from specli.errors import UsageError


@dataclass(frozen=True, slots=True)
class Difference:
    """One way of decoding in two files, on the prompts that both ran.

    a, b: tokens per second. ratio: of the medians, b over a. bound: what they differ by at most
    where nothing has changed, 19 times of 20, as a logarithm.
    """

    temperature: float
    category: str
    draft: str
    contestant: str
    a: Spread
    b: Spread
    bound: float

    @property
    def ratio(self) -> float:
        """How many times as fast the second is."""
        return self.b.median / self.a.median

    @property
    def beyond(self) -> bool:
        """Whether the difference is more than what each of them varied, and the bound."""
        a, b = self.a, self.b
        inside = a.low <= b.median <= a.high or b.low <= a.median <= b.high
        return not inside and abs(log(self.ratio)) > self.bound


def compare(a: Records, b: Records) -> list[Difference]:
    """Return what both files ran. Raises UsageError where there is no such run."""
    of_a, of_b = _by_way(a), _by_way(b)
    noise, found = _noise(a, b), []
    for key in sorted(of_a, key=lambda key: (key[0], key[1], key[2] != "none", key[2:])):
        if key in of_b:
            common = {run.prompt_sha256 for run in of_a[key]} & {
                run.prompt_sha256 for run in of_b[key]
            }
            sides = [[r.speed for r in of[key] if r.prompt_sha256 in common] for of in (of_a, of_b)]
            if common:
                bound = noise.bound(*map(len, sides))
                found.append(Difference(*key, spread(sides[0]), spread(sides[1]), bound))
    if not found:
        raise UsageError(
            "these files have no run in common",
            "the same prompts, temperatures, drafts and k are wanted in both",
        )
    return found


def unlike(a: Records, b: Records) -> list[str]:
    """Say what differs between two files beside the speeds: machine, llama.cpp, files, settings."""
    if a.setup is None or b.setup is None:
        return ["one of the files does not say on which machine it was made"]
    said = [
        f"{name}: {one or 'unknown'} and {other or 'unknown'}"
        for name, one, other in _facts(a.setup, b.setup)
        if one != other
    ]
    of_a, of_b = _by_way(a).keys(), _by_way(b).keys()
    for keys, name in ((of_a - of_b, "first"), (of_b - of_a, "second")):
        said += [
            f"only the {name} ran {c} at {t:g} with {way if draft == 'none' else f'{draft}, {way}'}"
            for t, c, draft, way in sorted(keys)
        ]
    n_all = len({r.prompt_sha256 for r in a.runs()} | {r.prompt_sha256 for r in b.runs()})
    n_both = len({r.prompt_sha256 for r in a.runs()} & {r.prompt_sha256 for r in b.runs()})
    tokens = [sorted({run.max_tokens for run in records.runs()}) for records in (a, b)]
    if tokens[0] != tokens[1]:
        one, other = (", ".join(map(str, some)) or "none" for some in tokens)
        said.append(f"tokens of an answer: {one} and {other}")
    if n_both < n_all:
        said.append(f"prompts: {n_both} of {n_all} are in both, and only these are compared")
    return said


def _facts(a: Setup, b: Setup) -> list[tuple[str, str, str]]:
    """Return what should be the same: its name, and what each file says."""

    n_drafts = max(len(a.drafts), len(b.drafts))

    def facts(setup: Setup) -> dict[str, str]:
        drafts = [*map(_file, setup.drafts), *["no model"] * (n_drafts - len(setup.drafts))]
        return {
            "machine": f"{setup.cpu}, {setup.n_cores} cores",
            "devices": ", ".join(setup.devices),
            "driver": setup.driver,
            "threads": str(setup.n_threads),
            "llama.cpp": setup.llama,
            "build": setup.backend,
            "specli": f"{setup.specli} {setup.commit}".strip(),
            "target": _file(setup.target),
            **{f"draft {i}": draft for i, draft in enumerate(drafts, 1)},
            **{key: _as_set(value) for key, value in setup.settings.items()},
        }

    one, other = facts(a), facts(b)
    return [(name, one.get(name, ""), other.get(name, "")) for name in {**one, **other}]


def _as_set(value: object) -> str:
    """Return a setting as config.toml has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _file(file: ModelFile) -> str:
    return f"{file.name} {file.sha256[:12] or f'{file.size_bytes} bytes'}"


def _by_way(records: Records) -> dict[tuple[float, str, str, str], list[Run]]:
    found: dict[tuple[float, str, str, str], list[Run]] = {}
    for run in records.runs():
        key = run.temperature, run.category, run.draft, run.contestant
        found.setdefault(key, []).append(run)
    return found


def _noise(*files: Records) -> Noise:
    """Return how far the speeds of the same prompt in one file vary."""
    groups: dict[tuple[object, ...], list[float]] = {}
    for number, records in enumerate(files):
        for run in records.runs():
            key = number, run.temperature, run.draft, run.contestant, run.prompt_sha256
            groups.setdefault(key, []).append(run.speed)
    return pooled(groups.values())


def as_dicts(differences: Sequence[Difference]) -> list[dict[str, object]]:
    """Return them as plain data."""
    return [
        {
            "temperature": d.temperature,
            "category": d.category,
            "draft": d.draft,
            "contestant": d.contestant,
            "a": {"median": d.a.median, "min": d.a.low, "max": d.a.high},
            "b": {"median": d.b.median, "min": d.b.low, "max": d.b.high},
            "ratio": d.ratio,
            "bound": None if d.bound == inf else exp(d.bound),
            "beyond_spread": d.beyond,
        }
        for d in differences
    ]
