"""From loaded models to ready decoders: the one module that knows all the parts."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from specli.backend.context import LlamaContext
from specli.backend.library import version
from specli.chat import Answerer
from specli.engine.acceptance import Acceptance
from specli.engine.cache import Cache
from specli.engine.calibration import measure_costs, measure_switch
from specli.engine.constrained import ConstrainedLookup, ConstrainedSampler
from specli.engine.costs import N_MAX, CostCurve, ratios_of_rows
from specli.engine.decode import Decoder, never
from specli.engine.drafters import NGRAM_SIZES, ModelDrafter, NgramDrafter
from specli.engine.fixed import FixedPlanner
from specli.engine.planner import AutoPlanner
from specli.engine.sampler import LogitSampler, of_draft
from specli.engine.stats import Stats
from specli.engine.tempering import Tempering
from specli.engine.types import Grammar, Lookup, Planner, Sampler
from specli.events import Start
from specli.learned import Learned
from specli.loaded import Models, load_models, n_threads
from specli.measurements import file_identity
from specli.models.store import Located
from specli.settings import SamplingSettings, Settings


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and what guesses for it: a model's file, "ngram" or "none"."""

    target: Located
    draft: Located | str


@dataclass(frozen=True, slots=True)
class Session:
    """A loaded pair that answers.

    n_rows: most rows of logits that a decode returns: one more than guesses in a round. retune:
    makes a session of the same models with another k or sampling, after which this one is of no
    more use; None where others see to that.
    """

    answerer: Answerer
    pair: Pair
    method: str  # what guesses: draft, ngram, both or none
    reason_off: str  # why it is none, where something else was wanted
    seed: int
    n_ctx: int
    n_rows: int
    requantized: bool  # whether the draft is loaded in fewer bits than its file has
    retune: Callable[[Settings], "Session"] | None = None


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What a planner begins with; it goes on learning in the very objects that it is given.

    target_s, draft_s: seconds of a decode of n tokens, by n. switch_s: what the target takes longer
    for another n than the last. target_each_s, draft_each_s: of a token more in a prompt.
    """

    target_s: Mapping[int, float]
    draft_s: Mapping[int, float] = field(default_factory=dict)
    acceptance: Mapping[str, Acceptance] = field(default_factory=dict)
    switch_s: float = 0.0
    tempering: Tempering = field(default_factory=Tempering)
    target_each_s: float = 0.0
    draft_each_s: float = 0.0


@contextmanager
def open_session(
    pair: Pair,
    settings: Settings,
    interrupted: Callable[[], bool] = never,
    on_load: Callable[[str, float], None] = lambda names, share: None,
) -> Iterator[Session]:
    """Load a pair and hold it for as long as the context lasts; keep what it learns.

    Without guesses (k = 0) the draft is left where it is: more need more rows, and loading anew.
    interrupted: asked while models load, prompts are evaluated and tokens come; a yes ends that.
    on_load: told the models' names and how much of them, 0 to 1, is loaded. Raises ModelError,
    PairError, Interrupted.
    """
    draft = _draft_of(pair, settings)
    drafts = [draft] if draft else []
    n_rows = rows_needed(pair, settings)
    with load_models(pair.target, drafts, settings, n_rows, interrupted, on_load) as models:
        opened = _Opened(models, pair, identity(pair, models.settings))
        try:
            yield opened.start(settings)
        finally:
            opened.keep_learned()


def rows_needed(pair: Pair, settings: Settings) -> int:
    """Return how many rows of logits one decode of the target has to give."""
    if pair.draft == "none":
        return 1
    return N_MAX if settings.k is None else settings.k + 1


class _Opened:
    """Loaded models and the session of them that is in use; what it learns is kept."""

    def __init__(self, models: Models, pair: Pair, identity: Mapping[str, Any]) -> None:
        """identity: all that costs depend on."""
        self._models = models
        self._pair = pair
        self._identity = identity
        self._current: tuple[Session, Learned] | None = None

    def start(self, settings: Settings) -> Session:
        """Make a session that takes the place of the one before."""
        self.keep_learned()
        models, pair = self._models, self._pair
        goes_on = self._current is not None
        learned = Learned(self._identity, settings.sampling, goes_on=goes_on)

        def know() -> Knowledge:
            draft = models.draft(pair.draft.path) if isinstance(pair.draft, Located) else None
            return Knowledge(
                measure_costs(models.target, learned.target_s, _TARGET_S),
                measure_costs(draft, learned.draft_s, _DRAFT_S, n_rows=1) if draft else {},
                learned.acceptance,
                measure_switch(models.target),
                learned.tempering,
                learned.target_each_s,
                learned.draft_each_s,
            )

        session = replace(new_session(models, pair, settings, know), retune=self.start)
        self._current = session, learned
        return session

    def keep_learned(self) -> None:
        """Write down what the session in use has learned of costs and acceptance."""
        if self._current is None:
            return
        session, learned = self._current
        decoder = session.answerer.decoder
        if decoder.target.costs:
            drafter = decoder.drafter
            draft_costs = drafter.cache.costs if isinstance(drafter, ModelDrafter) else None
            learned.save(decoder.target.costs, draft_costs)


def start_of(session: Session, settings: Settings) -> Start:
    """Return the event with which the answers of a session begin."""
    pair = session.pair
    shown = asdict(settings) | {"seed": session.seed, "n_ctx": session.n_ctx}
    if settings.chat_template:
        shown["chat_template"] = str(settings.chat_template)
    return Start(
        pair.target.name,
        pair.draft.name if isinstance(pair.draft, Located) else pair.draft,
        session.method,
        session.reason_off or None,
        session.requantized,
        shown,
    )


def new_session(
    models: Models, pair: Pair, settings: Settings, know: Callable[[], Knowledge]
) -> Session:
    """Make a session that begins as if no other had been: empty caches, a random state of its own.

    settings: as those that the models were loaded with, in all that concerns loading. know: asked
    where the planner has to know something. Sessions of the same models share their contexts: only
    the one that was made last can be used.
    """
    seed = secrets.randbits(32) if settings.seed is None else settings.seed
    models.target.truncate(0)
    grammar = models.grammar(settings.grammar) if settings.grammar else None
    guessers = _guessers(models, pair, settings, seed, grammar)
    cache = Cache(models.target)
    decoder = Decoder(
        cache,
        guessers.drafter,
        guessers.lookup,
        _planner(settings, cache, guessers, know),
        _sampler(settings.sampling, models.vocabulary.n_tokens, grammar),
        models.vocabulary.eog,
        np.random.default_rng([seed, 0]),
        models.interrupted,
    )
    stats = Stats(guessers.method, guessers.reason_off)
    answerer = Answerer(decoder, models.vocabulary, models.template, stats, settings.stops)
    n_ctx, n_rows = models.target.n_ctx, models.target.n_rows
    draft = models.drafts.get(pair.draft.path) if isinstance(pair.draft, Located) else None
    requantized = draft is not None and draft.is_copy
    said = guessers.method, guessers.reason_off
    return Session(answerer, pair, *said, seed, n_ctx, n_rows, requantized)


def identity(pair: Pair, settings: Settings) -> dict[str, Any]:
    """Return all that costs depend on, beside the machine."""
    draft = _draft_of(pair, settings)
    return {
        "llama.cpp": version(),
        "target": file_identity(pair.target.path),
        "draft": file_identity(draft.path) if draft else None,
        "requantize_draft": settings.requantize_draft,
        "n_threads": n_threads(settings),
        "n_gpu_layers": [settings.n_gpu_layers, settings.draft_n_gpu_layers],
    }


def _draft_of(pair: Pair, settings: Settings) -> Located | None:
    """Return the model that guesses, if one may."""
    return pair.draft if isinstance(pair.draft, Located) and settings.k != 0 else None


@dataclass(frozen=True, slots=True)
class _Guessers:
    """What guesses and, where that is nothing though it was wanted, why."""

    drafter: ModelDrafter | None = None
    lookup: Lookup | None = None
    reason_off: str = ""

    @property
    def method(self) -> str:
        if self.drafter and self.lookup:
            return "both"
        guesser = self.drafter or self.lookup
        return guesser.name if guesser else "none"


def _sampler(settings: SamplingSettings, n_vocab: int, grammar: Grammar | None) -> Sampler:
    if grammar is None:
        return LogitSampler(settings, n_vocab)
    return ConstrainedSampler(settings, n_vocab, grammar)


def _lookup(grammar: Grammar | None, sizes: tuple[int, ...] = NGRAM_SIZES) -> Lookup:
    lookup = NgramDrafter(sizes)
    return ConstrainedLookup(lookup, grammar) if grammar else lookup


def _guessers(
    models: Models, pair: Pair, settings: Settings, seed: int, grammar: Grammar | None
) -> _Guessers:
    """Make what guesses: a lookup beside a draft only where the planner can choose."""
    if pair.draft == "none" or settings.k == 0:
        return _Guessers()
    if reason := why_no_rewind(models.target, pair.target.name):
        return _Guessers(reason_off=reason)
    if not isinstance(pair.draft, Located):
        return _Guessers(lookup=_lookup(grammar))
    context = models.draft(pair.draft.path)
    context.truncate(0)
    if reason := why_no_rewind(context, pair.draft.path.stem):
        return _Guessers(reason_off=reason)
    rng = np.random.default_rng([seed, 1])
    n_vocab = models.vocabulary.n_tokens
    sampler = _sampler(of_draft(settings.sampling), n_vocab, grammar)
    temperature = settings.sampling.temperature
    drafter = ModelDrafter(
        Cache(context), sampler, n_vocab, rng, temperature=temperature, greedy=not temperature
    )
    sizes = NGRAM_SIZES if drafter.reads_along else _LONG
    return _Guessers(drafter, None if settings.k else _lookup(grammar, sizes))


def why_no_rewind(context: LlamaContext, name: str) -> str:
    """Return why a context cannot take guesses back, "" where it can. Leaves it empty."""
    if context.n_ctx < 2:
        return f"the context of {name} holds {context.n_ctx} token, a guess needs another"
    return "" if context.can_rewind() else f"{name} cannot drop rejected tokens from its memory"


def _planner(
    settings: Settings, target: Cache, guessers: _Guessers, know: Callable[[], Knowledge]
) -> Planner:
    """Make what decides how many guesses to buy."""
    if settings.k is not None or guessers.method == "none":
        return FixedPlanner(settings.k or 0)
    known = know()
    target.costs = CostCurve(known.target_s, known.switch_s, known.target_each_s, all_rows=True)
    if not guessers.drafter:
        return AutoPlanner(target.costs, None, known.acceptance)
    guessers.drafter.temper(known.tempering)
    cache = guessers.drafter.cache
    cache.costs = CostCurve(known.draft_s, each_s=known.draft_each_s)
    if guessers.drafter.reads_along:
        cache.ratios_of_rows = ratios_of_rows(cache.costs)
    return AutoPlanner(target.costs, cache.costs, known.acceptance, cache.ratios_of_rows)


# Of the second that measuring may take at the start.
_TARGET_S, _DRAFT_S = 0.65, 0.33
# Beside a draft that does not read along only long matches guess: after shorter ones it is right
# more often (docs/adr/0022).
_LONG = (8,)
