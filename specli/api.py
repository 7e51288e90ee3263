"""Load a pair for a program.

What takes time is imported by `load`. Nothing here prints, handles signals, or reads config.toml or
SPECLI_ variables: a program says itself what it wants.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from specli.errors import Interrupted, UsageError
from specli.settings import DEFAULT_TARGET, SamplingSettings, Settings, check_text, shown
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
    requantize_draft: bool = True,
    chat_template: Model | None = None,
    json_schema: Mapping[str, Any] | bool | Model | None = None,
    grammar: Model | None = None,
    think: Literal["show", "hide", "off"] = "hide",
    offline: bool = False,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> Speculator:
    """Load a target and what guesses for it; close what is returned, or use it in a `with`.

    The arguments mean what the options of their names mean to `specli run`. target: None for
    "demo", a very small model. draft: None for the registered one, else n-grams. json_schema: as
    Python's objects, as JSON or the file of it. grammar: GBNF, or the file of it. on_progress: told
    from another thread what is fetched or loaded and what share of it, 0 to 1, once per hundredth
    at most; an exception of it ends the loading. Raises SpecliError: UsageError, ModelError,
    PairError.
    """
    from specli.structured import read_grammar

    if isinstance(draft_tokens, str) and draft_tokens != "auto":
        raise UsageError(f'draft_tokens is {draft_tokens!r}, "auto" or a number is wanted')
    if not (on_progress is None or callable(on_progress)):
        raise UsageError(f"on_progress is {shown(on_progress)}, a function is wanted")
    switches = {"requantize_draft": requantize_draft, "offline": offline, "force": force}
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise UsageError(f"{name} is {shown(value)}, True or False is wanted")
    with named_in_python():
        names = _name("--target", target), _name("--draft", draft)
        template = _name("--chat-template", chat_template)
        settings = Settings(
            k=None if draft_tokens == "auto" else draft_tokens,
            sampling=_sampling(temp, top_k, top_p, min_p, repeat_penalty),
            seed=seed,
            n_ctx=ctx,
            draft_n_ctx=draft_ctx,
            n_threads=threads,
            n_gpu_layers=gpu_layers,
            draft_n_gpu_layers=draft_gpu_layers,
            requantize_draft=requantize_draft,
            chat_template=None if template is None else Path(template),
            think=think,
            force=force,
            grammar=read_grammar(_schema(json_schema), _name("--grammar", grammar)),
        )
        worker, stack = Worker(), ExitStack()
        try:
            progress = _Progress(on_progress, worker)
            with progress.raising():
                pair, notes = worker.do(lambda: _find(*names, offline, progress), _PATIENCE_S)
                session = worker.do(lambda: _open(pair, settings, progress, stack))
        except BaseException:
            free(worker, stack)
            raise
        return Speculator(session, settings, notes, worker, stack)


class _Progress:
    """Tells a program how far the loading is, a hundredth at a time; what that raises ends it.

    Most calls come through C code, where an exception would be lost.
    """

    def __init__(self, on_progress: OnProgress | None, worker: Worker) -> None:
        self._on_progress = on_progress
        self._worker = worker
        self._last = "", -1
        self._error: BaseException | None = None

    def tell(self, what: str, share: float) -> None:
        """Tell what is loaded and what share of it, where that is news."""
        now = what, int(100 * share)
        if self._on_progress is None or self._error or now == self._last:
            return
        self._last = now
        try:
            self._on_progress(what, share)
        except BaseException as error:
            self._error = error

    def stopped(self) -> bool:
        """Say whether the loading is to end."""
        return self._error is not None or self._worker.stopped()

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise what the program's function raised, at the end."""
        try:
            yield
        except Interrupted:
            if self._error is None:
                raise
        if self._error:
            raise self._error


def _sampling(
    temp: float, top_k: int, top_p: float, min_p: float, repeat_penalty: float
) -> SamplingSettings:
    """Return the settings with 1 as 1.0, so that they are those of the command line."""
    SamplingSettings(temp, top_k, top_p, min_p, repeat_penalty)  # raises where one is no number
    return SamplingSettings(float(temp), top_k, float(top_p), float(min_p), float(repeat_penalty))


def _name(option: str, model: object) -> str | None:
    """Return a name or a path as the command line takes it. Raises UsageError."""
    if model is None:
        return None
    if isinstance(model, os.PathLike):
        return str(Path(model).absolute())
    check_text(option, model)
    if not model or "\0" in str(model):
        raise UsageError(f"{option} is {model!r}, a name or a path is wanted")
    return str(model)


def _schema(schema: object) -> str | None:
    """Return a schema as the command line takes it. Raises UsageError."""
    if schema is None or isinstance(schema, str | os.PathLike):
        return _name("--json-schema", schema)
    if not isinstance(schema, Mapping | bool):
        raise UsageError(f"--json-schema is {shown(schema)}, a dict or a text is wanted")
    try:
        return json.dumps(dict(schema) if isinstance(schema, Mapping) else schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"--json-schema cannot be written as JSON: {error}") from None


def _find(
    target: str | None, draft: str | None, offline: bool, progress: _Progress
) -> "tuple[Pair, list[str]]":
    """Locate the models, and fetch what is not here; return notes, too."""
    from specli.assemble import Pair
    from specli.models.pairing import Named, find_models

    def fetched(now: "Progress") -> None:
        done, total = now.done_bytes, now.total_bytes
        progress.tell(f"fetching {now.name}", done / total if total else 0.0)

    notes: list[str] = []
    located, (guesser,) = find_models(
        Named(target or DEFAULT_TARGET),
        [Named(draft) if draft else None],
        offline,
        fetched,
        lambda: nullcontext(progress.stopped),
        notes.append,
    )
    return Pair(located, guesser), notes


def _open(pair: "Pair", settings: Settings, progress: _Progress, stack: ExitStack) -> "Session":
    from specli.assemble import open_session

    def loaded(names: str, share: float) -> None:
        progress.tell(f"loading {names}", share)

    return stack.enter_context(open_session(pair, settings, progress.stopped, loaded))
