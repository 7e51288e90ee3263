"""From the options of specli verify to its report."""

import secrets
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import typer

from specli.assemble import Pair, Session, open_session
from specli.bench.prompts import Prompt, by_category, load_prompts
from specli.chat import Message
from specli.cli.choices import with_guesses
from specli.cli.interrupt import Interrupt
from specli.cli.options import ModelOptions
from specli.cli.session import find_pair
from specli.cli.streams import write
from specli.cli.verify_output import Subject, report_json, report_text
from specli.cli.waiting import Waiting
from specli.engine.fixed import FixedPlanner
from specli.errors import Interrupted, ModelError, TooLongError, UsageError
from specli.models.store import Located
from specli.settings import Settings
from specli.verification.draws import N_TOKENS, Draws, K, Place, draw, find_places
from specli.verification.equality import Comparison, compare
from specli.verification.plain import Target, target_of
from specli.verification.report import DrawTest, Report, evaluate
from specli.verification.statistics import ALPHA, SUSPICION

_MAX_TOKENS, _MAX_TOKENS_QUICK = 64, 20
_PER_CATEGORY, _PER_CATEGORY_QUICK = 3, 1
_DRAWS, _DRAWS_QUICK = 600, 80
_PLACES, _PLACES_QUICK = 4, 2
_N_PASSES = 3  # in which each token is looked at: plain, speculative, judged
_AGAIN = 2  # times as many draws in the second run, where the first one found something


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of verify's own; None for what `quick` makes of it."""

    quick: bool
    prompts: Path | None
    per_category: int | None
    draws: int | None
    raw: bool


def run_verification(options: ModelOptions, wanted: Wanted) -> None:
    """Compare, test, report. Ends with exit code 1 or 130 where that is the verdict."""
    options = with_guesses(options)
    settings = _settings(options)
    plan = _plan(wanted, settings)
    pair = find_pair(options)
    interrupt = Interrupt()
    with closing(Waiting()) as waiting, interrupt.listening():
        verification = _Verification(pair, settings, plan, options.system, interrupt, waiting)
        with suppress(Interrupted):  # the report says so
            verification.run()
    report = verification.report(interrupt())
    if report.comparisons or not report.interrupted:
        show = report_json if options.json else report_text
        write(show(report, verification.subject, verification.text))
    if report.interrupted:
        raise Interrupted("interrupted")
    if report.verdict == "different":
        raise typer.Exit(1)


def _settings(options: ModelOptions) -> Settings:
    """Return the settings, with a seed. Raises UsageError where there is nothing to compare."""
    settings = options.settings()
    if options.draft == "none" or settings.k == 0:
        raise UsageError(
            "without a draft there is nothing to compare",
            "leave out --draft none and -k 0, or name a draft",
        )
    if settings.stops and options.is_given("stop"):
        raise UsageError("verify compares tokens: --stop has no meaning here", "leave it out")
    seed = secrets.randbits(32) if settings.seed is None else settings.seed
    return replace(settings, seed=seed, stops=())


@dataclass(frozen=True, slots=True)
class _Plan:
    """How much to do."""

    prompts: list[Prompt]
    raw: bool
    max_tokens: int
    n_draws: int
    n_places: int


def _plan(wanted: Wanted, settings: Settings) -> _Plan:
    if settings.max_tokens == 0:
        raise UsageError("--max-tokens is 0, there is nothing to compare")
    quick, prompts = wanted.quick, load_prompts(wanted.prompts)
    most = len(prompts) if wanted.prompts else _PER_CATEGORY
    most = wanted.per_category or (_PER_CATEGORY_QUICK if quick else most)
    n_draws = (_DRAWS_QUICK if quick else _DRAWS) if wanted.draws is None else wanted.draws
    return _Plan(
        [prompt for _, some in by_category(prompts, most) for prompt in some],
        wanted.raw,
        settings.max_tokens or (_MAX_TOKENS_QUICK if quick else _MAX_TOKENS),
        n_draws if settings.sampling.temperature else 0,
        _PLACES_QUICK if quick else _PLACES,
    )


class _Work:
    """How much of the work is done, in tokens; more of it may turn up."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._what = ""
        self._n_done = self._n_all = 0

    def expect(self, n: int) -> None:
        """Count on more."""
        self._n_all += n

    def show(self, what: str) -> None:
        """Say what is going on."""
        self._what = what
        self.advance(0)

    def advance(self, n: int) -> None:
        """Count as done."""
        self._n_done += n
        self._waiting.show(self._what, self._n_done / max(1, self._n_all))


class _Verification:
    """The two parts, with what they have found so far."""

    def __init__(
        self,
        pair: Pair,
        settings: Settings,
        plan: _Plan,
        system: str | None,
        interrupt: Interrupt,
        waiting: Waiting,
    ) -> None:
        self._pair = pair
        self._settings = settings
        self._plan = plan
        self._system = system
        self._interrupt = interrupt
        self._work = _Work(waiting)
        self._comparisons: list[Comparison] = []
        self._tests: list[DrawTest] = []
        self._rng = np.random.default_rng([settings.seed or 0, 2])
        self._pieces: dict[int, bytes] = {}
        draft = pair.draft.name if isinstance(pair.draft, Located) else pair.draft
        self.subject = Subject(pair.target.name, draft, "", "", settings)

    def report(self, interrupted: bool) -> Report:
        """Return what is known."""
        n_prompts = len(self._plan.prompts)
        return Report(tuple(self._comparisons), tuple(self._tests), n_prompts, interrupted)

    def text(self, tokens: Sequence[int]) -> str:
        """Return tokens as text."""
        return b"".join(self._pieces.get(token, b"") for token in tokens).decode("utf-8", "replace")

    def run(self) -> None:
        """Do both parts. Raises Interrupted; what is known by then can be reported."""
        settings, plan = self._settings, self._plan
        greedy = replace(settings, sampling=replace(settings.sampling, temperature=0.0))
        n_tokens = len(plan.prompts) * plan.max_tokens + plan.n_draws * N_TOKENS
        self._work.expect(n_tokens * _N_PASSES)
        self._work.show("loading")
        with open_session(self._pair, greedy, self._interrupt) as session:
            self.subject = replace(
                self.subject, method=session.method, reason_off=session.reason_off
            )
            if session.method == "none":
                return
            self._compare(session)
        if plan.n_draws:
            drawing = replace(settings, k=settings.k or K)
            with open_session(self._pair, drawing, self._interrupt) as session:
                self._draw(session)

    def _compare(self, session: Session) -> None:
        decoder, most = session.answerer.decoder, self._plan.max_tokens
        target = target_of(decoder, self._interrupt)
        planners = [decoder.planner]
        if self._settings.k is None:  # which might guess nothing
            planners.append(FixedPlanner(K))
        for number, prompt in enumerate(self._plan.prompts):
            decoder.planner = planners[number % len(planners)]
            self._work.show(f"greedy answers: {prompt.id}")
            tokens = self._tokens(session, prompt)
            done = compare(prompt.id, decoder, target, tokens, most)
            self._comparisons.append(done)
            self._keep_pieces(session, (*done.prompt, *done.answer))
            for parted in done.divergences:
                self._keep_pieces(session, (parted.speculative or 0,))
            self._work.advance(most * _N_PASSES)

    def _tokens(self, session: Session, prompt: Prompt) -> list[int]:
        """Return a prompt as `run` would send it. Raises UsageError where it does not fit."""
        text, template = prompt.text, session.answerer.template
        if not self._plan.raw:
            if template is None:
                raise ModelError(
                    "this model has no chat template",
                    "give one with --chat-template FILE, or continue the prompts with --raw",
                )
            said = [Message("system", self._system)] if self._system else []
            text = template.render([*said, Message("user", text)])
        tokens = session.answerer.tokenizer.tokenize(text)
        if len(tokens) >= session.n_ctx:
            n_ctx_train = session.answerer.decoder.target.model.n_ctx_train
            name = f"prompt {prompt.id}"
            raise TooLongError(len(tokens), session.n_ctx, n_ctx_train, name)
        return tokens

    def _draw(self, session: Session) -> None:
        decoder, n = session.answerer.decoder, self._plan.n_draws
        target = target_of(decoder, self._interrupt)
        self._work.show("looking for places to draw at")
        # Where the number of rows changes them, it changes what is drawn, and many draws show it.
        calm = sorted(self._comparisons, key=lambda done: done.noise)
        calm = calm[: max(self._plan.n_places, (len(calm) + 1) // 2)]
        texts = [(done.id, done.prompt, done.answer) for done in calm]
        places = find_places(decoder, target, texts, self._plan.n_places)
        self._work.show(f"drawing at temperature {self._settings.sampling.temperature:g}")
        self._test(session, target, places, n, SUSPICION)
        if not self._tests[0].passed:
            self._work.expect(n * N_TOKENS * _N_PASSES * _AGAIN)
            self._work.show("something was found: drawing anew, twice as much")
            self._test(session, target, places, n * _AGAIN, ALPHA)

    def _test(
        self, session: Session, target: Target, places: list[Place], n: int, alpha: float
    ) -> None:
        """Draw and test; where that is interrupted, test what there is."""
        noise = max((done.noise for done in self._comparisons), default=0.0)
        each = -(-n // len(places))
        found = [Draws(place) for place in places]
        try:
            for draws in found:
                draw(
                    *(draws, session.answerer.decoder, target, each, self._rng),
                    noise=noise,
                    on_answer=lambda: self._work.advance(N_TOKENS),
                )
        finally:
            for draws in found:
                for answer in (draws.place.tokens, *draws.plain, *draws.speculative):
                    self._keep_pieces(session, answer)
            if any(draws.speculative for draws in found):
                self._tests.append(evaluate(found, alpha, self._rng))

    def _keep_pieces(self, session: Session, tokens: tuple[int, ...]) -> None:
        for token in {*tokens} - self._pieces.keys():
            self._pieces[token] = session.answerer.tokenizer.piece(token)
