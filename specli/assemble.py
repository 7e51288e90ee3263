"""From settings and two files to a ready decoder: the one module that knows all the parts."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.model import LlamaModel
from specli.backend.sampler import LlamaSampler
from specli.chat import Answerer, ChatTemplate
from specli.engine.cache import Cache
from specli.engine.decode import Decoder, never
from specli.engine.drafters import ModelDrafter, NgramDrafter, NoDrafter
from specli.engine.planner import FixedPlanner
from specli.engine.stats import Stats
from specli.engine.types import Drafter
from specli.errors import ModelError
from specli.models.compatibility import check_pair
from specli.models.store import Located
from specli.settings import DEFAULT_N_CTX, Settings


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
    method: str  # the drafter at work: draft, ngram or none
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

    with ExitStack() as stack:

        def load(located: Located, n_gpu_layers: int, *, mapped: bool) -> LlamaModel:
            def on_share(share: float) -> bool:
                on_load(located.name, share)
                return not interrupted()

            model = LlamaModel(located.path, n_gpu_layers, on_share, mapped=mapped)
            return stack.enter_context(model)

        def open_context(model: LlamaModel, n_ctx: int, n_rows: int) -> LlamaContext:
            n_threads = settings.n_threads or psutil.cpu_count(logical=False) or 1
            wanted = ContextSettings(n_ctx, n_rows, n_threads)
            return stack.enter_context(LlamaContext(model, wanted, interrupted))

        def sampler(model: LlamaModel) -> LlamaSampler:
            made = LlamaSampler(settings.sampling, model.vocabulary.n_tokens)
            return stack.enter_context(closing(made))

        # A draft is small and all of it is used in every round: read it, and no page of it is held
        # twice. The target is mapped.
        draft = None
        if isinstance(pair.draft, Located):
            draft = load(pair.draft, settings.draft_n_gpu_layers, mapped=False)
        target = load(pair.target, settings.n_gpu_layers, mapped=True)
        vocabulary = target.vocabulary
        if draft:
            check_pair(vocabulary, draft.vocabulary)
        template = _template(target, settings.chat_template)

        n_ctx = _n_ctx(settings.n_ctx, target)
        context = open_context(target, n_ctx, settings.k + 1)
        drafter: Drafter = NoDrafter()
        reason_off = ""
        if pair.draft != "none" and settings.k > 0:
            if not context.can_rewind():
                reason_off = f"{pair.target.name} cannot drop rejected tokens from its memory"
            elif draft:
                draft_n_ctx = settings.draft_n_ctx
                draft_context = open_context(
                    draft, n_ctx if draft_n_ctx is None else _n_ctx(draft_n_ctx, draft), 1
                )
                if draft_context.can_rewind():
                    drafter = ModelDrafter(
                        Cache(draft_context),
                        sampler(draft),
                        vocabulary.eog,
                        vocabulary.n_tokens,
                        np.random.default_rng([seed, 1]),
                    )
                else:
                    reason_off = f"{draft.path.stem} cannot drop rejected tokens from its memory"
            else:
                drafter = NgramDrafter()

        decoder = Decoder(
            Cache(context),
            drafter,
            FixedPlanner(settings.k),
            sampler(target),
            vocabulary.eog,
            np.random.default_rng([seed, 0]),
            interrupted,
        )
        stats = Stats(drafter.name, reason_off)
        answerer = Answerer(decoder, vocabulary, template, stats, settings.stops)
        yield Session(answerer, pair, drafter.name, reason_off, seed, n_ctx)


def _n_ctx(wanted: int | None, model: LlamaModel) -> int:
    if wanted is None:
        return min(DEFAULT_N_CTX, model.n_ctx_train)
    return wanted or model.n_ctx_train


def _template(model: LlamaModel, path: Path | None) -> ChatTemplate | None:
    try:
        source = path.read_text(encoding="utf-8") if path else model.chat_template
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: cannot be read as a chat template: {error}") from None
    if not source:
        return None
    vocabulary = model.vocabulary
    bos, eos = (
        vocabulary.text(token).decode("utf-8", "replace")
        for token in (vocabulary.bos, vocabulary.eos)
    )
    return ChatTemplate(source, bos, eos)
