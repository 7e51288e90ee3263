"""A target and what may guess for it, in memory, each once: sessions are made of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.grammar import LlamaGrammar
from specli.backend.memory import gpu_free_bytes, measure_need
from specli.backend.model import LlamaModel, Vocabulary
from specli.cgroups import memory_free_bytes
from specli.engine.decode import never
from specli.errors import ModelError
from specli.files import read_most
from specli.memory import Need, Room, check_fit
from specli.models.compatibility import check_pair, check_sidecar
from specli.models.header import architecture_of, file_bytes
from specli.models.store import Located
from specli.models.vocabulary import check_tokens
from specli.settings import Settings, context_size
from specli.template import ChatTemplate


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
            wanted = ContextSettings(n_ctx, 1, n_threads(self.settings))
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
    on_load: Callable[[str, float], None] = lambda name, share: None,
) -> Iterator[Models]:
    """Load models and hold them for as long as the context lasts.

    n_rows: most rows of logits that one decode of the target returns. interrupted: asked while
    models load and prompts are evaluated; a yes ends that. on_load: told how much of a model, 0 to
    1, is loaded. Raises ModelError, PairError, Interrupted.
    """
    with ExitStack() as stack:

        def model(located: Located, n_gpu_layers: int, *, mapped: bool) -> LlamaModel:
            def on_share(share: float) -> bool:
                on_load(located.name, share)
                return not interrupted()

            loaded = LlamaModel(located.path, n_gpu_layers, on_share, mapped=mapped)
            return stack.enter_context(loaded)

        for located in (target, *drafts):
            if located.entry is None or located.entry.is_local:  # others load; to look takes time
                check_tokens(located.path)
        for draft in drafts:
            check_sidecar(architecture_of(draft.path), draft.name)
        mapped = True
        for beside in () if settings.force else drafts or (None,):
            mapped &= check_memory(target, beside, settings, n_rows)
        # A draft is small and all of it is used in every round: read it, and no page of it is held
        # twice (docs/adr/0005).
        of_draft = settings.draft_n_gpu_layers
        small = {draft.path: model(draft, of_draft, mapped=False) for draft in drafts}
        large = model(target, settings.n_gpu_layers, mapped=mapped)
        for one in small.values():
            check_pair(large.vocabulary, one.vocabulary)
        n_ctx = context_size(settings.n_ctx, large.n_ctx_train)
        wanted = ContextSettings(n_ctx, n_rows, n_threads(settings))
        template = _template(large, settings)
        context = stack.enter_context(LlamaContext(large, wanted, interrupted))
        names = context, target.name, large.vocabulary, template
        yield Models(*names, small, settings, interrupted, stack)


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
    return need, measure_need(draft.path, n_ctx, 1, settings.draft_n_gpu_layers)


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
    try:
        source = read_most(path).decode("utf-8") if path else model.chat_template
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
    return ChatTemplate(source, bos, eos, settings.think)
