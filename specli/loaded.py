"""A target and what may guess for it, in memory, each once: sessions are made of them."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from threading import Event
from typing import TypeAlias

import psutil

from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.grammar import LlamaGrammar
from specli.backend.library import llama
from specli.backend.memory import gpu_free_bytes, measure_need
from specli.backend.model import LlamaModel, Vocabulary, go_on
from specli.cgroups import memory_free_bytes
from specli.engine.along import DRAFT_ROWS
from specli.engine.decode import never
from specli.errors import Interrupted, ModelError, UsageError
from specli.files import read_text
from specli.memory import Need, Room, check_fit
from specli.models.compatibility import check_pair, check_sidecar
from specli.models.header import architecture_of, file_bytes
from specli.models.store import Located
from specli.models.vocabulary import check_tokens
from specli.requantized import in_four_bits
from specli.settings import Settings, context_size
from specli.template import ChatTemplate

_Loader: TypeAlias = Callable[..., LlamaModel]  # given on_load, as LlamaModel is

_TICK_S = 0.05  # how often loading is looked at


@dataclass(frozen=True, slots=True)
class Models:
    """The target's context, vocabulary and template; drafts: weights by their files."""

    target: LlamaContext
    target_name: str
    vocabulary: Vocabulary
    template: ChatTemplate | None
    drafts: dict[Path, LlamaModel]
    settings: Settings
    interrupted: Callable[[], bool]
    _stack: ExitStack
    _contexts: dict[Path, LlamaContext] = field(default_factory=dict)

    def draft(self, path: Path) -> LlamaContext:
        """Return the context of a draft, made at the first call."""
        if path not in self._contexts:
            model = self.drafts[path]
            n_ctx = self.settings.draft_n_ctx
            n_ctx = self.target.n_ctx if n_ctx is None else context_size(n_ctx, model.n_ctx_train)
            wanted = ContextSettings(n_ctx, DRAFT_ROWS, n_threads(self.settings))
            context = LlamaContext(model, wanted, self.interrupted)
            self._contexts[path] = self._stack.enter_context(context)
        return self._contexts[path]

    def grammar(self, text: str) -> LlamaGrammar:
        """Return a grammar over the target's tokens. Raises UsageError where it is none."""
        return self._stack.enter_context(LlamaGrammar(self.vocabulary, text))


@contextmanager
def load_models(
    target: Located,
    drafts: Sequence[Located],
    settings: Settings,
    n_rows: int,
    interrupted: Callable[[], bool] = never,
    on_load: Callable[[str, float], None] = lambda names, share: None,
) -> Iterator[Models]:
    """Load models and hold them for as long as the context lasts.

    n_rows: most rows of logits that one decode of the target returns. interrupted: asked while
    models load and prompts are evaluated; a yes ends that. on_load: told the models' names and
    how much of them, 0 to 1, is loaded. Raises ModelError, PairError, Interrupted.
    """
    names = " and ".join(located.name for located in (target, *drafts))
    on_load(names, 0.0)
    with ExitStack() as stack:
        for located in (target, *drafts):
            if located.entry is None or located.entry.is_local:  # others load; to look takes time
                check_tokens(located.path)
        for draft in drafts:
            check_sidecar(architecture_of(draft.path), draft.name)
        mapped = True
        for beside in () if settings.force else drafts or (None,):
            mapped &= check_memory(target, beside, settings, n_rows)
        if not _has_room_for_copies(target, drafts):
            settings = replace(settings, requantize_draft=False)
        wanted: list[_Loader] = [partial(load_draft, draft.path, settings) for draft in drafts]
        wanted.append(partial(LlamaModel, target.path, settings.n_gpu_layers, mapped=mapped))
        loading = _load(wanted, interrupted, lambda share: on_load(names, share))
        *small, large = map(stack.enter_context, loading)
        for one in small:
            check_pair(large.vocabulary, one.vocabulary)
        n_ctx = context_size(settings.n_ctx, large.n_ctx_train)
        room = ContextSettings(n_ctx, n_rows, n_threads(settings))
        template = _template(large, settings)
        context = stack.enter_context(LlamaContext(large, room, interrupted))
        of_target = context, target.name, large.vocabulary, template
        weights = {model.path: model for model in small}
        yield Models(*of_target, weights, settings, interrupted, stack)


def load_draft(
    path: Path, settings: Settings, on_load: Callable[[float], bool] = go_on
) -> LlamaModel:
    """Load a draft as it guesses fastest: read, not mapped, on a CPU in four bits.

    It is small and all of it is used in every round, so no page of it is to be held twice
    (docs/adr/0005, docs/adr/0024). Arguments and errors as of LlamaModel.
    """
    n_gpu_layers = settings.draft_n_gpu_layers

    def on_copy(share: float) -> bool:
        return on_load(share / 2)

    def on_rest(share: float) -> bool:
        return on_load((1 + share) / 2)

    if settings.requantize_draft and (n_gpu_layers == 0 or gpu_free_bytes() == 0):
        with in_four_bits(path, n_threads(settings), on_copy) as copy, suppress(ModelError):
            if copy:  # where that cannot be loaded, the draft is loaded as it is
                return LlamaModel(path, n_gpu_layers, on_rest, mapped=False, copy=copy)
    return LlamaModel(path, n_gpu_layers, on_load, mapped=False)


def _has_room_for_copies(target: Located, drafts: Sequence[Located]) -> bool:
    """Say whether drafts fit into memory twice: while they are loaded, copies lie beside them."""
    sizes = [2 * file_bytes(draft.path) for draft in drafts]
    return file_bytes(target.path) + sum(sizes) < memory_free_bytes()


def _load(
    wanted: Sequence[_Loader], interrupted: Callable[[], bool], on_load: Callable[[float], None]
) -> list[LlamaModel]:
    """Load models side by side: loading one keeps little more than one core busy.

    The first that cannot be loaded breaks the others off.
    """
    llama()  # once, before threads ask for it
    shares = [0.0] * len(wanted)
    given_up = Event()

    def load(i: int) -> LlamaModel:
        def on_share(share: float) -> bool:
            shares[i] = share
            return not given_up.is_set()

        try:
            return wanted[i](on_load=on_share)
        except BaseException:
            given_up.set()
            raise

    with ThreadPoolExecutor(len(wanted)) as pool:
        futures = [pool.submit(load, i) for i in range(len(wanted))]
        try:
            is_done = False
            while not is_done:
                is_done = not wait(futures, _TICK_S).not_done
                on_load(fmean(shares))
                if interrupted():
                    raise Interrupted("interrupted")
            if errors := [error for future in futures if (error := future.exception())]:
                raise min(errors, key=lambda error: isinstance(error, Interrupted))
            return [future.result() for future in futures]
        except BaseException:
            given_up.set()
            for future in futures:
                if not future.exception():
                    future.result().close()
            raise


def n_threads(settings: Settings) -> int:
    """Return how many threads of the CPU decode."""
    return settings.n_threads or psutil.cpu_count(logical=False) or 1


def check_memory(target: Located, draft: Located | None, settings: Settings, n_rows: int) -> bool:
    """Raise ModelError where a pair does not fit into memory; else say whether to map the target.

    Only what could fill the memory is reckoned up: that takes as long as reading a vocabulary.
    Where it is that tight, a target whose weights llama.cpp lays out anew is read.
    """
    room = Room(memory_free_bytes(), gpu_free_bytes())
    files = file_bytes(target.path) + (file_bytes(draft.path) if draft else 0)
    usual = settings.n_ctx is None and settings.draft_n_ctx is None
    if usual and 4 * files < (room.gpu_bytes or room.ram_bytes):
        return True
    need, draft_need = reckon(target, draft, settings, n_rows)
    check_fit(need, draft_need, room, _smaller(target, need, draft_need, room))
    return not need.repacked


def reckon(
    target: Located, draft: Located | None, settings: Settings, n_rows: int
) -> tuple[Need, Need | None]:
    """Return what a target and a draft will take of memory."""
    need = measure_need(target.path, settings.n_ctx, n_rows, settings.n_gpu_layers)
    if draft is None:
        return need, None
    n_ctx = need.n_ctx if settings.draft_n_ctx is None else settings.draft_n_ctx
    return need, measure_need(draft.path, n_ctx, DRAFT_ROWS, settings.draft_n_gpu_layers)


def _smaller(target: Located, need: Need, draft: Need | None, room: Room) -> str:
    """Return the name of the target's largest quantization that fits, "" where none is known to."""
    others = need.total_bytes - need.weights_bytes + (draft.total_bytes if draft else 0)
    most = min(room.total_bytes - others, need.weights_bytes - 1)
    entry = target.entry
    fitting = [file for file in entry.files if 0 < file.size_bytes <= most] if entry else []
    best = max(fitting, key=lambda file: file.size_bytes, default=None)
    return f"{entry.alias}:{best.quant}" if entry and best else ""


def _template(model: LlamaModel, settings: Settings) -> ChatTemplate | None:
    path = settings.chat_template
    called = f"--chat-template: {path}:"
    try:
        source = read_text(path, called, pipes=True) if path else model.chat_template
    except UsageError as error:  # as of a model whose own template is none
        raise ModelError(error.message, error.hint) from None
    if path and not source:
        raise ModelError(f"{called} is empty", "--raw sends a text as it is")
    if not source:
        return None
    vocabulary = model.vocabulary
    bos, eos = (
        vocabulary.text(token).decode("utf-8", "replace")
        for token in (vocabulary.bos, vocabulary.eos)
    )
    return ChatTemplate(source, bos, eos, settings.think)
