"""The pair that answers in a conversation, and how another takes its place."""

from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import typer

from specli.assemble import rows_needed
from specli.cli.choices import with_choices
from specli.cli.options import ModelOptions
from specli.cli.session import Ready, find_pair, load_session
from specli.cli.streams import say_error
from specli.config import pair_key
from specli.engine.cache import Cache
from specli.errors import ModelError, SpecliError
from specli.kv_state import KvState, put_back, state_identity, take
from specli.models.store import is_path
from specli.settings import DEFAULT_TARGET, Settings


class Current:
    """Holds one loaded pair at a time: two might not fit into memory."""

    def __init__(self, options: ModelOptions, grammar: str = "") -> None:
        """Load the pair. Raises SpecliError, also where it cannot hold a conversation.

        grammar: what every answer has to follow.
        """
        self._grammar = grammar
        self._stack, self.ready, self.options = _opened(options, grammar)

    def reload(self, options: ModelOptions) -> None:
        """Let another pair, or other settings of loading, take the place of these.

        Where that fails, the old ones come back and the SpecliError is raised. What the target
        remembers of the conversation goes with it, where it is the same.
        """
        options.settings()
        if options.target is None:
            options = options.changed(target=DEFAULT_TARGET)
        find_pair(with_choices(options))  # most mistakes are found before anything is closed
        old, state = self.options, self.state()
        self.close()
        try:
            self._stack, self.ready, self.options = _opened(options, self._grammar)
        except SpecliError:
            self._open_again(old)
            self.restore(state)
            raise
        self.restore(state)

    def retune(self, options: ModelOptions, settings: Settings) -> None:
        """Change what needs no loading: k and sampling.

        options: the same changes, for the next time that something is loaded.
        """
        session = self.ready.session
        retune = session.retune
        if retune is None or rows_needed(session.pair, settings) > session.n_rows:
            self.reload(options)
            return
        state = self.state()
        session = retune(settings)
        self.options, self.ready = options, replace(self.ready, session=session, settings=settings)
        self.restore(state)
        self.ready.output.start(session, settings)

    def state(self) -> KvState | None:
        """Copy what the target remembers."""
        return take(self._cache, self.identity)

    def restore(self, state: KvState | None) -> bool:
        """Let the target remember what it did when a state was taken; say whether it does."""
        return put_back(state, self._cache, self.identity)

    @property
    def identity(self) -> dict[str, Any]:
        """What its states depend on."""
        session, settings = self.ready.session, self.ready.settings
        target = session.pair.target.path
        return state_identity(target, session.n_ctx, settings.n_gpu_layers)

    @property
    def references(self) -> dict[str, str]:
        """Target and draft as the user named them, wherever one stands; "" for the usual draft."""
        target, draft = self.options.target or DEFAULT_TARGET, self.options.draft or ""
        return {
            "target": pair_key(target, is_path(target)),
            "draft": pair_key(draft, bool(draft) and is_path(draft)),
        }

    def close(self) -> None:
        """Free the models."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def _open_again(self, options: ModelOptions) -> None:
        try:
            self._stack, self.ready, self.options = _opened(options, self._grammar)
        except SpecliError as error:  # nothing is left to talk to
            say_error(error)
            raise typer.Exit(error.exit_code) from None

    @property
    def _cache(self) -> Cache:
        return self.ready.session.answerer.decoder.target


def _opened(options: ModelOptions, grammar: str) -> tuple[ExitStack, Ready, ModelOptions]:
    """Load a pair; what is returned first frees it."""
    with ExitStack() as stack:
        ready = stack.enter_context(load_session(options, conversation=True, grammar=grammar))
        if ready.session.answerer.template is None:
            raise ModelError(
                f"{ready.session.pair.target.name} has no chat template",
                "give one with --chat-template FILE, or continue a text with specli run --raw",
            )
        return stack.pop_all(), ready, options
