"""The pair that answers in a conversation, and how another takes its place."""

from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import typer

from specli.assemble import rows_needed
from specli.cli.interrupt import Interrupt
from specli.cli.options import ModelOptions
from specli.cli.session import Found, Ready, blamed_on_settings, find, load_found
from specli.cli.streams import say_error
from specli.config import pair_key
from specli.engine.cache import Cache
from specli.errors import Interrupted, ModelError, SpecliError
from specli.kv_state import KvState, put_back, state_identity, take
from specli.models.compatibility import check_pair, check_sidecar
from specli.models.header import read_header
from specli.models.store import Located, is_path
from specli.models.vocabulary import vocabulary_of
from specli.settings import DEFAULT_TARGET, Settings


class Current:
    """Holds one loaded pair at a time: two might not fit into memory."""

    ready: Ready
    options: ModelOptions
    _found: Found
    _stack: ExitStack

    def __init__(self, options: ModelOptions, grammar: str = "") -> None:
        """Load the pair. Raises SpecliError, also where it cannot hold a conversation.

        grammar: what every answer has to follow.
        """
        self._grammar = grammar
        self._open(find(options, grammar))
        self.options = _named(options)

    def reload(self, options: ModelOptions) -> bool:
        """Let another pair, or other settings of loading, take the place of these.

        Returns whether the target remembers what was said: what it knows of the conversation goes
        with it, where it is the same. Where that fails, or Ctrl-C ends it, the old ones stay, or
        come back, and the SpecliError is raised.
        """
        try:
            found = find(options, self._grammar)
            check_found(found)  # all that can be known before anything is closed
        except KeyboardInterrupt:
            raise self._stopped() from None
        with Interrupt().listening(_MOST) as stopped:
            old, state = replace(self._found, settings=self.ready.settings), self.state()
            self.close()
            try:
                if stopped():
                    raise Interrupted("interrupted")
                self._open(found, _MOST)
            except SpecliError as error:
                self._open_again(old)
                self.restore(state)
                raise self._stopped() if isinstance(error, Interrupted) else error from None
            self.options = options
            return self.restore(state)

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

    def _open(self, found: Found, most: int = 2, *, stoppable: bool = True) -> None:
        with ExitStack() as stack:
            loaded = load_found(found, conversation=True, most=most, stoppable=stoppable)
            ready = stack.enter_context(loaded)
            if ready.session.answerer.template is None:
                raise no_template(found)
            self._found, self.ready, self._stack = found, ready, stack.pop_all()

    def _open_again(self, found: Found) -> None:
        """Load what was there before; one more Ctrl-C, meant for what failed, does not stop it."""
        try:
            self._open(found, _MOST, stoppable=False)
        except SpecliError as error:  # nothing is left to talk to
            say_error(error)
            raise typer.Exit(error.exit_code) from None

    def _stopped(self) -> Interrupted:
        return Interrupted(f"{self.ready.session.pair.target.name} answers as before")

    @property
    def _cache(self) -> Cache:
        return self.ready.session.answerer.decoder.target


def check_found(found: Found) -> None:
    """Raise SpecliError where the headers of the files say that they cannot hold a conversation."""
    target, draft = found.pair.target, found.pair.draft
    header = read_header(target.path)
    if found.settings.chat_template is None and not header.values.get("tokenizer.chat_template"):
        raise no_template(found)
    if isinstance(draft, Located):
        guesser = read_header(draft.path)
        with blamed_on_settings(found.options):
            check_sidecar(guesser.architecture, draft.name)
            check_pair(vocabulary_of(header), vocabulary_of(guesser))


def no_template(found: Found) -> ModelError:
    """Return what is said of a target that knows no conversations."""
    return ModelError(
        f"{found.pair.target.name} has no chat template",
        "give one with --chat-template FILE, or continue a text with specli run --raw",
    )


def _named(options: ModelOptions) -> ModelOptions:
    """Return options in which the usual target is there by its name: nobody is told of it again."""
    return options if options.target else options.changed(target=DEFAULT_TARGET)


_MOST = 3  # one more Ctrl-C than ends other work: people press it twice, and want their chat
