"""Who runs against whom, in which order, and which of many settings run to the end."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Literal, Protocol, TypeAlias, TypeVar

from specli.bench.peer import PeerSettings
from specli.bench.prompts import Prompt, by_category
from specli.bench.record_files import Recorder
from specli.bench.records import Foresight, Passes, Record, Run
from specli.errors import UsageError

Group: TypeAlias = Literal["plain", "auto", "fixed"]
SCREEN_TOKENS = 64
FINALISTS = {"fixed": 3, "peer": 4}  # how many of a group run to the end
PEER_N_MAX = (1, 3, 8, 12, 16)
PEER_P_MIN = (0.0, 0.3, 0.5, 0.75)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to run specli. k: guesses in a round, None for as many as pay. draft: for run().

    draft: none, model for the only one there is, or its label.
    """

    name: str
    group: Group
    k: int | None
    draft: str


Entry: TypeAlias = Contestant | PeerSettings
PLAIN = Contestant("plain", "plain", 0, "none")
AUTO = Contestant("auto", "auto", None, "model")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared on what. n_prompts: of each category. full: all settings run to the end."""

    entries: tuple[Entry, ...]
    prompts: tuple[Prompt, ...]
    categories: tuple[str, ...]
    temperatures: tuple[float, ...]
    n_prompts: int
    max_tokens: int
    repeats: int
    seed: int
    full: bool

    def parts(self) -> Iterator[tuple[str, list[Prompt], float]]:
        """Yield category, prompts and temperature of what is compared at once."""
        for category, prompts in by_category(list(self.prompts), self.n_prompts):
            if category in self.categories:
                for temperature in self.temperatures:
                    yield category, prompts, temperature

    def screened(self) -> list[Entry]:
        """Return those of which a first, short pass says whether they run to the end."""
        groups = {
            group: [entry for entry in self.entries if entry.group == group] for group in FINALISTS
        }
        crowded = [group for group, some in groups.items() if len(some) > FINALISTS[group]]
        return [] if self.full else [entry for group in crowded for entry in groups[group]]

    def screen_tokens(self) -> int:
        """Return how many tokens the first pass takes."""
        return min(SCREEN_TOKENS, self.max_tokens)

    def n_tokens(self) -> int:
        """Return how many tokens all runs want together."""
        screened = self.screened()
        n_out = sum(max(0, sum(e.group == g for e in screened) - n) for g, n in FINALISTS.items())
        n_final = (len(self.entries) - n_out) * self.repeats * self.max_tokens
        n_screen = len(screened) * self.screen_tokens()
        return sum(n_screen + len(prompts) * n_final for _, prompts, _ in self.parts())


class Runner(Protocol):
    """What loads models and measures."""

    def run(
        self, entry: Entry, prompt: Prompt, temperature: float, max_tokens: int, repeat: int
    ) -> Run:
        """Answer a prompt, cold."""

    def key(
        self, entry: Entry, prompt: Prompt, temperature: float, max_tokens: int, repeat: int
    ) -> tuple[object, ...]:
        """Return the key of the run that `run` would give."""

    def passes(self, plain: Run) -> Passes:
        """Measure what passes cost after the text of a plain run."""

    def foresee(self, plain: Run) -> Foresight:
        """Find out how far the guesses at each position of a plain run are right."""


@dataclass(slots=True)
class Contest:
    """Carries a plan out; what stands in the records already is not run again."""

    plan: Plan
    runner: Runner
    recorder: Recorder
    records: list[Record]
    on_run: Callable[[str, int], None]  # told what begins, and how many tokens are done

    def hold(self) -> None:
        """Run everything. Raises what the runner raises; all finished runs are written down."""
        for category, prompts, temperature in self.plan.parts():
            entries = self._screen(category, prompts[0], temperature)
            for i, prompt in enumerate(prompts):
                for repeat in range(self.plan.repeats):
                    order = rotated(entries, i + repeat)
                    n_tokens = self.plan.max_tokens
                    runs = [self._run(e, prompt, temperature, n_tokens, repeat) for e in order]
                    if temperature == 0 and repeat == 0:
                        self._foresee([run for run in runs if run.contestant == PLAIN.name])

    def _screen(self, category: str, prompt: Prompt, temperature: float) -> list[Entry]:
        """Return those that run to the end, by a short pass of all on one prompt."""
        n_tokens, screened = self.plan.screen_tokens(), self.plan.screened()
        runs = [self._run(entry, prompt, temperature, n_tokens, 0) for entry in screened]
        names = ranking(runs)
        best: set[str] = set()
        for group, n in FINALISTS.items():
            of_group = {entry.name for entry in screened if entry.group == group}
            best.update([name for name in names if name in of_group][:n])
        return [e for e in self.plan.entries if e not in screened or e.name in best]

    def _run(
        self, entry: Entry, prompt: Prompt, temperature: float, max_tokens: int, repeat: int
    ) -> Run:
        self.on_run(f"{entry.name}: {prompt.id} at {temperature:g}", 0)
        key = self.runner.key(entry, prompt, temperature, max_tokens, repeat)
        done = next((r for r in self.records if isinstance(r, Run) and r.key == key), None)
        if done is None:
            done = self.runner.run(entry, prompt, temperature, max_tokens, repeat)
            self._write(done)
        self.on_run("", max_tokens)
        return done

    def _foresee(self, plain: Sequence[Run]) -> None:
        """Measure what the bound needs: the passes once a category, the rest once a prompt."""
        for run in plain:
            if not any(isinstance(r, Passes) and r.category == run.category for r in self.records):
                self.on_run(f"what passes cost: {run.category}", 0)
                self._write(self.runner.passes(run))
            wanted = (run.prompt_id, run.max_tokens)
            if not any(
                isinstance(r, Foresight) and (r.prompt_id, r.max_tokens) == wanted
                for r in self.records
            ):
                self.on_run(f"foresight: {run.prompt_id}", 0)
                self._write(self.runner.foresee(run))

    def _write(self, record: Record) -> None:
        self.recorder.write(record)
        self.records.append(record)


def entries(ks: Sequence[int], peer: bool, only: Sequence[str]) -> tuple[Entry, ...]:
    """Return all that can run. only: names or groups of those wanted, none for all."""
    known: list[Entry] = [PLAIN, AUTO]
    known += [Contestant(f"k={k}", "fixed", k, "model") for k in ks]
    if peer:
        known += [PeerSettings(n_max, p_min) for n_max in PEER_N_MAX for p_min in PEER_P_MIN]
    for name in only:
        if not any(name in (entry.name, entry.group) for entry in known):
            raise UsageError(
                f"--only {name}: there is no such contestant",
                "plain, auto, fixed, peer (where --peer is given), or one name as reports have it",
            )
    return tuple(e for e in known if not only or e.name in only or e.group in only)


def rotated(items: Sequence[_T], by: int) -> list[_T]:
    """Return the items, beginning with another one: what drifts on a machine hits all alike."""
    by %= max(1, len(items))
    return [*items[by:], *items[:by]]


def mean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    logs = [log(value) for value in values]
    return exp(sum(logs) / len(logs))


def speeds(runs: Iterable[Run]) -> dict[str, dict[str, float]]:
    """Return tokens per second by contestant and prompt, the geometric mean of repeats."""
    found: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        found.setdefault(run.contestant, {}).setdefault(run.prompt_id, []).append(run.speed)
    return {
        name: {prompt: mean(some) for prompt, some in by_prompt.items()}
        for name, by_prompt in found.items()
    }


def ranking(runs: Iterable[Run]) -> list[str]:
    """Return the names of contestants, the fastest first."""
    means = {name: mean(by_prompt.values()) for name, by_prompt in speeds(runs).items()}
    return sorted(means, key=lambda name: means[name], reverse=True)
