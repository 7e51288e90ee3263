"""Who runs against whom, in which order, and which of many settings answer all prompts."""

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
FINALISTS = {"fixed": 2, "peer": 3}  # how many of a group answer more than the first prompt
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
class Task:
    """What is asked of a contestant. repeat: the how manieth time, from 0 on."""

    prompt: Prompt
    temperature: float
    max_tokens: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared on what.

    n_prompts: of each category. full: all settings answer all of them, not only the first one.
    abreast: our own contestants answer a prompt side by side, not one after the other.
    """

    entries: tuple[Entry, ...]
    prompts: tuple[Prompt, ...]
    categories: tuple[str, ...]
    temperatures: tuple[float, ...]
    n_prompts: int
    max_tokens: int
    repeats: int
    seed: int
    full: bool
    abreast: bool = False

    def parts(self) -> Iterator[tuple[list[Prompt], float]]:
        """Yield the prompts of a category and the temperature of what is compared at once."""
        for category, prompts in by_category(list(self.prompts), self.n_prompts):
            if category in self.categories:
                for temperature in self.temperatures:
                    yield prompts, temperature

    def n_tokens(self) -> int:
        """Return how many tokens all runs want together."""
        groups = [entry.group for entry in self.entries]
        n_out = 0 if self.full else sum(max(0, groups.count(g) - n) for g, n in FINALISTS.items())
        n_passes = [len(prompts) * self.repeats for prompts, _ in self.parts()]
        n_runs = sum(n * len(groups) - (n - 1) * n_out for n in n_passes)
        return n_runs * self.max_tokens


class Runner(Protocol):
    """What loads models and measures."""

    def run(self, entry: Entry, task: Task) -> Run:
        """Answer a prompt, cold."""

    def run_abreast(self, contestants: Sequence[Contestant], task: Task) -> list[Run]:
        """Let contestants answer a prompt side by side, each cold."""

    def key(self, entry: Entry, task: Task) -> tuple[object, ...]:
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
        for prompts, temperature in self.plan.parts():
            entries = self.plan.entries
            for i, prompt in enumerate(prompts):
                for repeat in range(self.plan.repeats):
                    task = Task(prompt, temperature, self.plan.max_tokens, repeat)
                    order = rotated(entries, i + repeat)
                    if self.plan.abreast:
                        self._run_abreast(order, task)
                    runs = [self._run(entry, task) for entry in order]
                    if not self.plan.full:
                        entries = finalists(entries, runs)
                    if temperature == 0 and repeat == 0:
                        self._foresee([run for run in runs if run.contestant == PLAIN.name])

    def _run_abreast(self, entries: Sequence[Entry], task: Task) -> None:
        """Let our own contestants that have no record yet answer side by side."""
        ours = [e for e in entries if isinstance(e, Contestant) and not self._found(e, task)]
        if ours:
            names = ", ".join(one.name for one in ours)
            self.on_run(f"{names}: {task.prompt.id} at {task.temperature:g}", 0)
            for run in self.runner.run_abreast(ours, task):
                self._write(run)

    def _run(self, entry: Entry, task: Task) -> Run:
        self.on_run(f"{entry.name}: {task.prompt.id} at {task.temperature:g}", 0)
        done = self._found(entry, task)
        if done is None:
            done = self.runner.run(entry, task)
            self._write(done)
        self.on_run("", task.max_tokens)
        return done

    def _found(self, entry: Entry, task: Task) -> Run | None:
        key = self.runner.key(entry, task)
        return next((r for r in self.records if isinstance(r, Run) and r.key == key), None)

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


def finalists(entries: Sequence[Entry], runs: Sequence[Run]) -> tuple[Entry, ...]:
    """Return those of a pass that answer the next prompt too: of a large group the fastest."""
    names = ranking(runs)
    out: set[str] = set()
    for group, n in FINALISTS.items():
        of_group = {entry.name for entry in entries if entry.group == group}
        out.update([name for name in names if name in of_group][n:])
    return tuple(entry for entry in entries if entry.name not in out)


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
