"""From the options of specli bench to its records and its answer."""

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from specli.assemble import why_no_rewind
from specli.bench.record_files import Recorder, line_of
from specli.bench.records import ModelFile, Passes, Record, Run, Setup
from specli.bench.schedule import Schedule, chosen, contestants, fitted
from specli.bench.setup import describe, model_file
from specli.bench.summary import advise
from specli.bench.trial import Bench, hold, measured
from specli.cli.bench_output import report
from specli.cli.bench_plan import Plan, Wanted, absolute, checked, fitting, labelled
from specli.cli.choices import with_guesses
from specli.cli.interrupt import Interrupt
from specli.cli.options import ModelOptions
from specli.cli.session import find_models
from specli.cli.streams import say, write, write_lines
from specli.cli.waiting import Waiting
from specli.config import PairChoice
from specli.config_edit import save_pair
from specli.derived import saves
from specli.engine.calibration import measure_switch
from specli.engine.costs import N_MAX
from specli.errors import Interrupted, PairError, SpecliError
from specli.files import unwritable
from specli.loaded import Models, load_models, reckon
from specli.models.store import Located
from specli.settings import DEFAULT_TARGET

QUICK_S = 110.0  # of the two minutes that --quick promises
_MEASURE_S, _MEASURE_QUICK_S = 20.0, 1.5  # most for what decodes of one model cost
_SHARE = 0.9  # of the time left is planned for: speeds are estimates


def run_bench(options: ModelOptions, wanted: Wanted) -> None:
    """Measure, say what came out, keep it. Raises Interrupted when what is done has been shown."""
    began, reference = time.perf_counter(), options.target or DEFAULT_TARGET
    if wanted.drafts is None:
        options = with_guesses(options)
    plan = checked(options, wanted)
    target, guessers = find_models(options, plan.drafts)
    drafts, told = labelled(plan.drafts, guessers)
    interrupt = Interrupt()
    with interrupt.listening(), closing(Waiting()) as bar:
        trial = _Trial(plan, wanted, options, target, drafts, interrupt, bar, began)
        stopped = trial.hold()
    if trial.setup is None or not trial.runs:
        raise Interrupted("interrupted")
    if not options.json:
        write_lines(report(trial.setup, trial.runs, reference, told, trial.large))
    if plan.out.exists():
        say("records", str(plan.out))
    if trial.failure:
        raise trial.failure
    if stopped:
        if wanted.save:
            say("saved", "nothing, as it was stopped")
        raise Interrupted("interrupted")
    if wanted.save:
        _save(trial.runs, reference, told)


@dataclass(slots=True)
class _Trial:
    """Everything that one benchmark needs, and what has come of it."""

    plan: Plan
    wanted: Wanted
    options: ModelOptions
    target: Located
    drafts: Mapping[str, Located | str]
    interrupt: Interrupt
    bar: Waiting
    began: float
    setup: Setup | None = None
    large: Sequence[str] = ()  # labels of drafts that fewer bits would make smaller
    failure: SpecliError | None = None  # what stopped it, where that was not the user
    runs: list[Run] = field(default_factory=list)

    def hold(self) -> bool:
        """Load, measure, run; say whether it was stopped."""
        located = list(self._models.values())
        try:
            with load_models(
                *(self.target, located, self.plan.settings, N_MAX, self.interrupt),
                lambda names, share: self.bar.show(f"loading {names}", share),
            ) as models:
                _check_rewind(models, self.target, located)
                bench = self._bench(models)
                self.large = [
                    label
                    for label, draft in self._models.items()
                    if self.plan.settings.requantize_draft
                    and saves(draft.path, models.drafts[draft.path].size_bytes)
                ]
                self.setup = self._describe(models)
                schedule = self._schedule(bench)
                self.bar.show("warming up", 0.0)
                bench.warm_up(schedule)
                self.bar.restart()
                if self._deadline_s is not None:
                    self.bar.until(self.began + self._deadline_s)
                write_run = self._writer(self.setup, bench.passes())
                hold(schedule, bench, write_run, self.bar.show, self._deadline_s)
        except Interrupted:
            return True
        return False

    @property
    def _models(self) -> Mapping[str, Located]:
        """The drafts that are models, by label."""
        return {label: draft for label, draft in self.drafts.items() if isinstance(draft, Located)}

    @property
    def _deadline_s(self) -> float | None:
        if self.wanted.duration:
            return 60.0 * self.wanted.duration
        return QUICK_S if self.wanted.quick else None

    def _bench(self, models: Models) -> Bench:
        """Measure what decodes cost; return what answers."""
        most_s = _MEASURE_QUICK_S if self.wanted.quick else _MEASURE_S
        self.bar.show("measuring what decodes cost", 0.0)
        draft_s = {
            label: measured(models.draft(draft.path), most_s, n_rows=1)
            for label, draft in self._models.items()
        }
        target_s = measured(models.target, most_s)
        system = self.options.system or ""
        loaded = models, self.target, self.drafts, self.plan.settings
        switch_s = measure_switch(models.target)
        return Bench(*loaded, system, target_s, draft_s, switch_s, self.began)

    def _describe(self, models: Models) -> Setup:
        def file(model: Located, label: str, others: Located | None) -> ModelFile:
            def on_share(share: float) -> bool:
                self.bar.show(f"hashing {model.name}", share)
                return not self.interrupt()

            need, of_draft = reckon(self.target, others, self.plan.settings, N_MAX)
            if of_draft:
                need = replace(of_draft, weights_bytes=models.drafts[model.path].size_bytes)
            return model_file(model, label, need, on_share)

        drafts = [file(draft, label, draft) for label, draft in self._models.items()]
        target = file(self.target, self.target.name, None)
        return describe(target, drafts, self.plan.settings, _command())

    def _schedule(self, bench: Bench) -> Schedule:
        """Return what is run: all that was asked for, or as much of it as fits."""
        plan = self.plan
        lengths = {prompt.id: bench.n_tokens(prompt) for prompt in plan.prompts}
        prompts = fitting(plan.prompts, lengths, plan.max_tokens, bench.models.target.n_ctx)
        if left_out := [prompt.id for prompt in plan.prompts if prompt not in prompts]:
            say("warning", f"too long for the context, left out: {', '.join(left_out)}")
        some = contestants(list(self.drafts), plan.settings.k, plan.ks)
        prompts = chosen(prompts, plan.n_prompts)
        whole = Schedule(some, prompts, plan.temperatures, plan.max_tokens, plan.repeats)
        if not self.wanted.quick:
            return whole
        left_s = _SHARE * (QUICK_S - (time.perf_counter() - self.began))
        least = plan.least_tokens
        smaller, said = fitted(whole, lambda s: bench.speeds().seconds(s, lengths), left_s, least)
        say("quick", said)
        return smaller

    def _writer(self, setup: Setup, passes: Sequence[Passes]) -> Callable[[Run], None]:
        """Return what keeps runs, what decodes cost before the first."""
        recorder = Recorder(self.plan.out, setup)

        def write_run(run: Run) -> None:
            records: list[Record] = [run] if self.runs else [*passes, run]
            try:
                for record in records:
                    recorder.write(record)
            except OSError as error:
                self.failure = unwritable(self.plan.out, error)
            if self.options.json:
                lines = [line_of(record) for record in records]
                write("".join(lines if self.runs else [line_of(setup), *lines]))
            self.runs.append(run)
            if self.failure:
                raise Interrupted("the records cannot be written")

        return write_run


def _check_rewind(models: Models, target: Located, drafts: Sequence[Located]) -> None:
    """Raise PairError where a model cannot speculate at all."""
    contexts = {target.name: models.target}
    contexts |= {draft.name: models.draft(draft.path) for draft in drafts}
    for name, context in contexts.items():
        if reason := why_no_rewind(context, name):
            raise PairError(
                f"{reason}: there is nothing to compare", "run and chat decode with it plainly"
            )


def _save(runs: Sequence[Run], reference: str, told: Mapping[str, str]) -> None:
    choice = choice_of(runs, told)
    if choice is None:
        say("saved", "nothing, as there is no clear difference")
        return
    path = save_pair(absolute(reference), choice)
    say("saved", f"draft {choice.draft}, draft_tokens {choice.draft_tokens} in {path}")


def choice_of(runs: Sequence[Run], told: Mapping[str, str]) -> PairChoice | None:
    """Return what is worth keeping; None where noise could have decided it."""
    advice = advise(runs)
    if advice is None or advice.verdict == "unclear":
        return None
    way = advice.way
    return PairChoice(told[way.draft], way.k) if way else PairChoice("none", "auto")


def _command() -> str:
    """Return the command as it was typed, files by their names only."""
    return shlex.join(
        ["specli", *(Path(word).name if "/" in word else word for word in sys.argv[1:])]
    )
