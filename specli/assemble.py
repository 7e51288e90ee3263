"""From settings and two files to a ready decoder: the one module that knows all the parts."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import psutil

from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.library import version
from specli.backend.memory import gpu_free_bytes, measure_need
from specli.backend.model import LlamaModel, Vocabulary
from specli.cgroups import memory_free_bytes
from specli.chat import Answerer, ChatTemplate
from specli.engine.cache import Cache
from specli.engine.costs import N_MAX, CostCurve, measure_costs
from specli.engine.decode import Decoder, never
from specli.engine.drafters import ModelDrafter, NgramDrafter
from specli.engine.planner import AutoPlanner, FixedPlanner
from specli.engine.sampler import LogitSampler, of_draft
from specli.engine.stats import Stats
from specli.engine.types import Planner
from specli.errors import ModelError
from specli.learned import Learned
from specli.measurements import file_identity
from specli.memory import Need, Room, check_fit
from specli.models.compatibility import check_pair, check_sidecar
from specli.models.header import architecture_of, file_bytes
from specli.models.store import Located
from specli.settings import Settings, context_size


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and what guesses for it: a model's file, "ngram" or "none"."""

    target: Located
    draft: Located | str


@dataclass(frozen=True, slots=True)
class Session:
    """A loaded pair that answers."""

    answerer: Answerer
    pair: Pair
    method: str  # what guesses: draft, ngram, both or none
    reason_off: str  # why it is none, where something else was wanted
    seed: int
    n_ctx: int


@contextmanager
def open_session(
    pair: Pair,
    settings: Settings,
    interrupted: Callable[[], bool] = never,
    on_load: Callable[[str, float], None] = lambda name, share: None,
) -> Iterator[Session]:
    """Load a pair and hold it for as long as the context lasts.

    interrupted: asked while models load, prompts are evaluated and tokens come; a yes ends that.
    on_load: told how much of a model, 0 to 1, is loaded. Raises ModelError, PairError,
    Interrupted.
    """
    seed = secrets.randbits(32) if settings.seed is None else settings.seed
    draft = None
    with _Parts(settings, interrupted, on_load) as parts:
        if isinstance(pair.draft, Located):
            check_sidecar(architecture_of(pair.draft.path), pair.draft.name)
        mapped = settings.force or check_memory(pair, settings)
        # A draft is small and all of it is used in every round: read it, and no page of it is held
        # twice (docs/adr/0005).
        if isinstance(pair.draft, Located):
            draft = parts.model(pair.draft, settings.draft_n_gpu_layers, mapped=False)
        target = parts.model(pair.target, settings.n_gpu_layers, mapped=mapped)
        vocabulary = target.vocabulary
        if draft:
            check_pair(vocabulary, draft.vocabulary)
        template = _template(target, settings.chat_template)
        n_ctx = context_size(settings.n_ctx, target.n_ctx_train)
        context = parts.context(target, n_ctx, _n_rows(pair, settings))
        guessers = parts.guessers(pair, context, vocabulary, draft, seed)
        cache = Cache(context)
        decoder = Decoder(
            cache,
            guessers.drafter,
            guessers.lookup,
            parts.planner(pair, cache, guessers),
            LogitSampler(settings.sampling, vocabulary.n_tokens),
            vocabulary.eog,
            np.random.default_rng([seed, 0]),
            interrupted,
        )
        stats = Stats(guessers.method, guessers.reason_off)
        answerer = Answerer(decoder, vocabulary, template, stats, settings.stops)
        yield Session(answerer, pair, guessers.method, guessers.reason_off, seed, n_ctx)


@dataclass(frozen=True, slots=True)
class _Guessers:
    """What guesses and, where that is nothing though it was wanted, why."""

    drafter: ModelDrafter | None = None
    lookup: NgramDrafter | None = None
    reason_off: str = ""

    @property
    def method(self) -> str:
        if self.drafter and self.lookup:
            return "both"
        guesser = self.drafter or self.lookup
        return guesser.name if guesser else "none"


def _n_rows(pair: Pair, settings: Settings) -> int:
    """Return the most rows of logits that one decode of the target returns."""
    if pair.draft == "none":
        return 1
    return N_MAX if settings.k is None else settings.k + 1


def check_memory(pair: Pair, settings: Settings) -> bool:
    """Raise ModelError where a pair does not fit into memory; else say whether to map the target.

    Only what could fill the memory is reckoned up: that takes as long as reading a vocabulary.
    Where it is that tight, a target whose weights llama.cpp lays out anew is read.
    """
    room = Room(memory_free_bytes(), gpu_free_bytes())
    draft = pair.draft if isinstance(pair.draft, Located) else None
    files = file_bytes(pair.target.path) + (file_bytes(draft.path) if draft else 0)
    usual = settings.n_ctx is None and settings.draft_n_ctx is None
    if usual and 4 * files < (room.gpu_bytes or room.ram_bytes):
        return True
    need = measure_need(
        pair.target.path, settings.n_ctx, _n_rows(pair, settings), settings.n_gpu_layers
    )
    draft_need = None
    if draft:
        n_ctx = need.n_ctx if settings.draft_n_ctx is None else settings.draft_n_ctx
        draft_need = measure_need(draft.path, n_ctx, 1, settings.draft_n_gpu_layers)
    check_fit(need, draft_need, room, _smaller(pair.target, need, draft_need, room))
    return not need.repacked


def _smaller(target: Located, need: Need, draft: Need | None, room: Room) -> str:
    """Return the name of the target's largest quantization that fits, "" where none is known to."""
    others = need.total_bytes - need.weights_bytes + (draft.total_bytes if draft else 0)
    most = min(room.total_bytes - others, need.weights_bytes - 1)
    entry = target.entry
    fitting = [file for file in entry.files if 0 < file.size_bytes <= most] if entry else []
    best = max(fitting, key=lambda file: file.size_bytes, default=None)
    return f"{entry.alias}:{best.quant}" if entry and best else ""


class _Parts:
    """Makes the parts of one session and closes them, the last made first."""

    def __init__(
        self,
        settings: Settings,
        interrupted: Callable[[], bool],
        on_load: Callable[[str, float], None],
    ) -> None:
        self._settings = settings
        self._interrupted = interrupted
        self._on_load = on_load
        self._stack = ExitStack()

    def model(self, located: Located, n_gpu_layers: int, *, mapped: bool) -> LlamaModel:
        def on_share(share: float) -> bool:
            self._on_load(located.name, share)
            return not self._interrupted()

        model = LlamaModel(located.path, n_gpu_layers, on_share, mapped=mapped)
        return self._stack.enter_context(model)

    def context(self, model: LlamaModel, n_ctx: int, n_rows: int) -> LlamaContext:
        wanted = ContextSettings(n_ctx, n_rows, self._n_threads)
        return self._stack.enter_context(LlamaContext(model, wanted, self._interrupted))

    def guessers(
        self,
        pair: Pair,
        target: LlamaContext,
        vocabulary: Vocabulary,
        draft: LlamaModel | None,
        seed: int,
    ) -> _Guessers:
        """Make what guesses: a lookup beside a draft only where the planner can choose."""
        if pair.draft == "none" or self._settings.k == 0:
            return _Guessers()
        if not target.can_rewind():
            return _Guessers(reason_off=_CANNOT_REWIND.format(pair.target.name))
        if draft is None:
            return _Guessers(lookup=NgramDrafter())
        n_ctx = self._settings.draft_n_ctx
        n_ctx = target.n_ctx if n_ctx is None else context_size(n_ctx, draft.n_ctx_train)
        context = self.context(draft, n_ctx, 1)
        if not context.can_rewind():
            return _Guessers(reason_off=_CANNOT_REWIND.format(draft.path.stem))
        rng = np.random.default_rng([seed, 1])
        n_vocab = vocabulary.n_tokens
        sampler = LogitSampler(of_draft(self._settings.sampling), n_vocab)
        greedy = self._settings.sampling.temperature == 0
        drafter = ModelDrafter(Cache(context), sampler, n_vocab, rng, greedy=greedy)
        return _Guessers(drafter, None if self._settings.k else NgramDrafter(_LONG))

    def planner(self, pair: Pair, target: Cache, guessers: _Guessers) -> Planner:
        """Make what decides how many guesses to buy; measure what decodes cost, if it must know."""
        if self._settings.k is not None or guessers.method == "none":
            return FixedPlanner(self._settings.k or 0)
        learned = Learned(self._identity(pair), self._settings.sampling)
        costs = CostCurve(measure_costs(target.model, learned.target_s, _TARGET_S))
        target.costs, draft_costs = costs, None
        if guessers.drafter:
            draft = guessers.drafter.cache
            draft_costs = CostCurve(measure_costs(draft.model, learned.draft_s, _DRAFT_S))
            draft.costs = draft_costs
        self._stack.callback(lambda: learned.save(costs, draft_costs))
        return AutoPlanner(costs, draft_costs, learned.acceptance)

    def _identity(self, pair: Pair) -> dict[str, Any]:
        """Return all that costs depend on, beside the machine."""
        settings = self._settings
        return {
            "llama.cpp": version(),
            "target": file_identity(pair.target.path),
            "draft": file_identity(pair.draft.path) if isinstance(pair.draft, Located) else None,
            "n_threads": self._n_threads,
            "n_gpu_layers": [settings.n_gpu_layers, settings.draft_n_gpu_layers],
        }

    @property
    def _n_threads(self) -> int:
        return self._settings.n_threads or psutil.cpu_count(logical=False) or 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


# Of the second that measuring may take at the start.
_TARGET_S, _DRAFT_S = 0.65, 0.25
# Beside a model only long matches guess: after shorter ones the model is right more often, and what
# it costs to read up on them is more than they save (docs/adr/0009).
_LONG = (8,)
_CANNOT_REWIND = "{} cannot drop rejected tokens from its memory"


def _template(model: LlamaModel, path: Path | None) -> ChatTemplate | None:
    try:
        source = path.read_text(encoding="utf-8") if path else model.chat_template
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ModelError(f"{path}: cannot be read as a chat template: not UTF-8") from None
    if not source:
        return None
    vocabulary = model.vocabulary
    bos, eos = (
        vocabulary.text(token).decode("utf-8", "replace")
        for token in (vocabulary.bos, vocabulary.eos)
    )
    return ChatTemplate(source, bos, eos)
