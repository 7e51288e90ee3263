"""Load a pair for a program.

What takes time is imported by `load`. Nothing here prints, handles signals, or reads config.toml or
SPECLI_ variables: a program says itself what it wants.
"""

import os
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from specli.errors import UsageError
from specli.settings import DEFAULT_TARGET, SamplingSettings, Settings
from specli.speculator import Speculator, free, named_in_python
from specli.worker import Worker

if TYPE_CHECKING:
    from specli.assemble import Pair, Session
    from specli.models.download import Progress

Model: TypeAlias = str | os.PathLike[str]
OnProgress: TypeAlias = Callable[[str, float], None]

_SAMPLING = SamplingSettings()
_PATIENCE_S = 1.0  # for a connection that says nothing


def load(
    target: Model | None = None,
    draft: Model | None = None,
    *,
    draft_tokens: int | Literal["auto"] = "auto",
    temp: float = _SAMPLING.temperature,
    top_k: int = _SAMPLING.top_k,
    top_p: float = _SAMPLING.top_p,
    min_p: float = _SAMPLING.min_p,
    repeat_penalty: float = _SAMPLING.repeat_penalty,
    seed: int | None = None,
    ctx: int | None = None,
    draft_ctx: int | None = None,
    threads: int | None = None,
    gpu_layers: int = -1,
    draft_gpu_layers: int = -1,
    chat_template: Model | None = None,
    think: Literal["show", "hide", "off"] = "hide",
    offline: bool = False,
    force: bool = False,
    on_progress: OnProgress = lambda what, share: None,
) -> Speculator:
    """Load a target and what guesses for it; close what is returned, or use it in a `with`.

    The arguments mean what the options of their names mean to `specli run`. target: None for
    "demo", a very small model. draft: None for the registered one, else n-grams. on_progress: told
    from another thread what is fetched or loaded and what share of it, 0 to 1; it must not raise.
    Raises SpecliError: UsageError, ModelError, PairError.
    """
    if isinstance(draft_tokens, str) and draft_tokens != "auto":
        raise UsageError(f'draft_tokens is {draft_tokens!r}, "auto" or a number is wanted')
    with named_in_python():
        settings = Settings(
            k=None if draft_tokens == "auto" else draft_tokens,
            sampling=SamplingSettings(float(temp), top_k, top_p, min_p, repeat_penalty),
            seed=seed,
            n_ctx=ctx,
            draft_n_ctx=draft_ctx,
            n_threads=threads,
            n_gpu_layers=gpu_layers,
            draft_n_gpu_layers=draft_gpu_layers,
            chat_template=None if chat_template is None else Path(chat_template),
            think=think,
            force=force,
        )
        worker, stack = Worker(), ExitStack()
        try:
            names = _reference(target or DEFAULT_TARGET), draft and _reference(draft)
            pair, notes = worker.do(
                lambda: _find(names[0], names[1] or None, offline, worker, on_progress), _PATIENCE_S
            )
            session = worker.do(lambda: _open(pair, settings, worker, on_progress, stack))
        except BaseException:
            free(worker, stack)
            raise
        return Speculator(session, settings, notes, worker, stack)


def _reference(model: Model) -> str:
    return model if isinstance(model, str) else str(Path(model).absolute())


def _find(
    target: str, draft: str | None, offline: bool, worker: Worker, on_progress: OnProgress
) -> "tuple[Pair, list[str]]":
    """Locate the models, and fetch what is not here; return notes, too."""
    from specli.assemble import Pair
    from specli.models.pairing import Named, find_models

    def fetched(progress: "Progress") -> None:
        done, total = progress.done_bytes, progress.total_bytes
        on_progress(f"fetching {progress.name}", done / total if total else 0.0)

    notes: list[str] = []
    located, (guesser,) = find_models(
        Named(target),
        [Named(draft) if draft else None],
        offline,
        fetched,
        lambda: nullcontext(worker.stopped),
        notes.append,
    )
    return Pair(located, guesser), notes


def _open(
    pair: "Pair", settings: Settings, worker: Worker, on_progress: OnProgress, stack: ExitStack
) -> "Session":
    from specli.assemble import open_session

    def loaded(name: str, share: float) -> None:
        on_progress(f"loading {name}", share)

    return stack.enter_context(open_session(pair, settings, worker.stopped, loaded))
