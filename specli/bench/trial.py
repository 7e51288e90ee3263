"""Answers for `specli bench`, each cold: nothing of the one before is left but the weights."""

import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from hashlib import sha256

from specli.assemble import Knowledge, Pair, identity, new_session
from specli.bench.contest import Contestant
from specli.bench.energy import EnergyMeter
from specli.bench.prompts import Prompt
from specli.bench.records import Passes, Run, columns
from specli.bench.schedule import Schedule, Speeds
from specli.chat import Done, Message, Progress
from specli.engine.calibration import measure_costs
from specli.engine.costs import N_MAX
from specli.engine.types import Model, Round
from specli.errors import Interrupted
from specli.learned import Learned
from specli.loaded import Models
from specli.models.store import Located
from specli.settings import SamplingSettings, Settings

SEED = 1
_WARM_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Bench:
    """Loaded models, and what each run begins with.

    drafts: what guesses, by label. target_s, draft_s: what decodes cost when the benchmark began,
    seconds by their number of tokens; switch_s: what the target takes longer for another number
    than the last. settings: seed included.
    """

    models: Models
    target: Located
    drafts: Mapping[str, Located | str]
    settings: Settings
    system: str
    target_s: Mapping[int, float]
    draft_s: Mapping[str, Mapping[int, float]]
    switch_s: float
    began: float  # by time.perf_counter
    meter: EnergyMeter = field(default_factory=EnergyMeter)
    _learned: dict[tuple[str, SamplingSettings], Learned] = field(default_factory=dict)

    def run(
        self, contestant: Contestant, prompt: Prompt, temperature: float, n: int, repeat: int
    ) -> Run:
        """Answer a prompt with up to n tokens, cold. Raises Interrupted."""
        settings = replace(
            self.settings,
            k=contestant.k,
            seed=(self.settings.seed or 0) + repeat,
            sampling=replace(self.settings.sampling, temperature=temperature),
        )
        draft = contestant.draft

        def know() -> Knowledge:
            known = self.learned(draft, settings.sampling)
            costs = self.target_s, self.draft_s.get(draft, {})
            return Knowledge(*costs, known.acceptance, self.switch_s, known.tempering)

        session = new_session(self.models, self._pair(draft), settings, know)
        text, rounds, done = self.text(prompt), [], None
        before, at_s = self.meter.read(), time.perf_counter() - self.began
        for event in session.answerer.complete(text, n):
            if isinstance(event, Progress) and event.n_done == event.n_total:
                before = self.meter.read()
            elif isinstance(event, Round):
                rounds.append(event)
            elif isinstance(event, Done):
                done = event
        if done is None or done.reason == "interrupted":
            raise Interrupted("interrupted")
        joules, stats = self.meter.joules(before), done.stats
        history = session.answerer.decoder.history
        return Run(
            contestant=contestant.name,
            category=prompt.category,
            prompt_id=prompt.id,
            prompt_sha256=sha256(text.encode()).hexdigest(),
            prompt_n=stats.prompt_n,
            temperature=temperature,
            seed=session.seed,
            max_tokens=n,
            repeat=repeat,
            tokens=stats.predicted_n,
            seconds=stats.predicted_s,
            stats=stats.as_dict(),
            answer=tuple(history[-stats.predicted_n :]) if contestant.group == "plain" else (),
            draft=draft,
            k=contestant.k,
            reason=done.reason,
            at_s=round(at_s, 3),
            energy_j=joules,
            rounds=columns(rounds),
        )

    def text(self, prompt: Prompt) -> str:
        """Return what the model reads: the prompt in its template, where it has one."""
        if self.models.template is None:
            return prompt.text
        system = [Message("system", self.system)] if self.system else []
        return self.models.template.render([*system, Message("user", prompt.text)])

    def n_tokens(self, prompt: Prompt) -> int:
        """Return how many tokens a prompt has for the model."""
        return len(self.models.vocabulary.tokenize(self.text(prompt)))

    def warm_up(self, schedule: Schedule) -> None:
        """Let every contestant decode a few tokens, which do not count."""
        prompt = min(schedule.prompts, key=self.n_tokens)
        for contestant in schedule.contestants:
            self.run(contestant, prompt, schedule.temperatures[0], _WARM_TOKENS, 0)

    def passes(self) -> list[Passes]:
        """Return what decodes cost, for the records."""
        target_s = dict(self.target_s)
        found = [Passes("", target_s, costs[1], label) for label, costs in self.draft_s.items()]
        return found or [Passes("", target_s, 0.0)]

    def speeds(self) -> Speeds:
        """Return what runs take, roughly."""
        of_drafts = {label: _of_prompt(costs) for label, costs in self.draft_s.items()}
        return Speeds(_of_prompt(self.target_s), self.target_s[1], of_drafts)

    def learned(self, draft: str, sampling: SamplingSettings) -> Learned:
        """Return what was known of guesses before the first run, for one planner to go on with."""
        key = draft, sampling
        if key not in self._learned:
            pair = self._pair(draft)
            self._learned[key] = Learned(identity(pair, self.settings), sampling)
        return deepcopy(self._learned[key])

    def _pair(self, draft: str) -> Pair:
        return Pair(self.target, self.drafts.get(draft, draft))


def measured(model: Model, most_s: float, n_rows: int = N_MAX) -> dict[int, float]:
    """Return what decodes of 1 to N_MAX tokens cost, in seconds; take at most so long, roughly.

    n_rows: most rows of logits that they return.
    """
    (one,) = measure_costs(model, {}, 0.0).values()
    return measure_costs(model, {}, min(most_s, max(1.0, 60 * one)), n_rows)


def hold(
    schedule: Schedule,
    bench: Bench,
    write: Callable[[Run], None],
    on_run: Callable[[str, float], None],
    deadline_s: float | None = None,
) -> bool:
    """Run a schedule; say whether all of it was.

    write: given every run when it is done. on_run: told what begins, and what share, 0 to 1, is
    done. deadline_s: seconds since the benchmark began, after which no part begins, nor one before
    that would hardly end in time.
    """
    n_parts = sum(1 for _ in schedule.parts()) if schedule.repeats else 0
    longest_s = 0.0
    for i, part in enumerate(schedule.parts()):
        started = time.perf_counter() - bench.began
        if deadline_s is not None and i and started + longest_s > deadline_s:
            return False
        share = i / n_parts if n_parts else started / (deadline_s or 1.0)
        for j, contestant in enumerate(part.contestants):
            within = j / len(part.contestants) / n_parts if n_parts else 0.0
            what = f"{part.prompt.id}, {contestant.name}"
            on_run(what, min(1.0, share + within))
            wanted = part.prompt, part.temperature, schedule.max_tokens, part.repeat
            write(bench.run(contestant, *wanted))
        longest_s = max(longest_s, time.perf_counter() - bench.began - started)
    return True


def _of_prompt(costs: Mapping[int, float]) -> float:
    """Return the seconds of a token of a prompt: of the largest decode that was measured."""
    n = min(N_MAX, max(costs))
    return costs[n] / n
