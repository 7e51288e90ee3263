"""From command-line options to a loaded session, telling the user what happens."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

from specli.assemble import Pair, Session, open_session
from specli.cli.choices import with_choices
from specli.cli.downloads import Downloads
from specli.cli.interrupt import Interrupt
from specli.cli.live import make_output
from specli.cli.options import ModelOptions
from specli.cli.output import Output
from specli.cli.streams import say
from specli.cli.waiting import Waiting
from specli.errors import Interrupted, PairError
from specli.models import pairing
from specli.models.pairing import Named
from specli.models.store import Located
from specli.settings import DEFAULT_TARGET, Settings


@dataclass(frozen=True, slots=True)
class Ready:
    """A loaded session, the output that shows it, and the ear for Ctrl-C."""

    session: Session
    settings: Settings
    output: Output
    interrupt: Interrupt


@contextmanager
def load_session(
    options: ModelOptions, conversation: bool = False, grammar: str = ""
) -> Iterator[Ready]:
    """Check the options, find the files, load them, say what starts.

    conversation: several answers follow each other, so each ends its line. grammar: what each has
    to follow.
    """
    with load_found(find(options, grammar), conversation) as ready:
        yield ready


@dataclass(frozen=True, slots=True)
class Found:
    """A pair whose files are here, and all that is needed to load it."""

    options: ModelOptions
    settings: Settings
    pair: Pair


def find(options: ModelOptions, grammar: str = "") -> Found:
    """Check the options and find the files; fetch what is not here. Raises SpecliError."""
    options = with_choices(options)
    settings = replace(options.settings(), grammar=grammar)
    chosen = options.origins.get("draft")
    if options.draft == "none" and chosen and chosen.kind == "pair":
        say("hint", "config.toml says not to speculate here; --draft or --draft-tokens N does")
    elif options.draft == "none" and settings.k and options.is_given("draft_tokens"):
        say("hint", f"--draft none guesses nothing, --draft-tokens {settings.k} changes nothing")
    return Found(options, settings, find_pair(options))


@contextmanager
def load_found(
    found: Found, conversation: bool = False, most: int = 2, *, stoppable: bool = True
) -> Iterator[Ready]:
    """Load a pair, say what starts.

    most: so many times Ctrl-C end the process. stoppable: the first of them ends the loading.
    """
    options, settings, pair = found.options, found.settings, found.pair
    output = make_output(options, conversation)
    waiting = Waiting()

    def tidy() -> None:  # a second Ctrl-C, too, leaves neither a bar nor a hidden cursor
        waiting.close()
        output.close()

    interrupt = Interrupt(tidy, output.resumed)
    is_heard = stoppable

    def stopped() -> bool:
        return is_heard and interrupt()

    with ExitStack() as stack:
        with interrupt.listening(most), closing(waiting), blamed_on_settings(options):
            opened = open_session(
                pair,
                settings,
                stopped,
                lambda names, share: waiting.show(f"loading {names}", share),
            )
            session = stack.enter_context(opened)
        if stopped():
            raise Interrupted("interrupted")
        is_heard = True  # from here on it is about answers
        if remark := session.answerer.remark:
            say("hint", remark)
        output.start(session, settings)
        yield Ready(session, settings, output, interrupt)


def find_pair(options: ModelOptions) -> Pair:
    """Locate target and draft; where no draft is named, the registered one, else n-gram."""
    target, (draft,) = find_models(options, [options.draft])
    return Pair(target, draft)


def find_models(
    options: ModelOptions, drafts: Sequence[str | None]
) -> tuple[Located, list[Located | str]]:
    """Locate the target and what may guess for it; None: the registered draft, else n-gram."""
    if options.target is None:
        say("hint", f"{DEFAULT_TARGET}, a very small model, answers; choose another with --target")
    with Downloads() as downloads:
        return pairing.find_models(
            Named(options.target or DEFAULT_TARGET, _said_in(options, "target")),
            [
                Named(draft, _said_in(options, "draft", draft)) if draft else None
                for draft in drafts
            ],
            options.offline,
            downloads.show,
            Interrupt().listening,
            lambda note: say("hint", note),
        )


def _said_in(options: ModelOptions, name: str, value: str | None = None) -> str:
    """Return where a model was named, "" where that was on the command line."""
    origin = options.origins.get(name)
    is_it = value is None or value == getattr(options, name)
    return origin.name if origin and is_it and origin.kind != "flag" else ""


@contextmanager
def blamed_on_settings(options: ModelOptions) -> Iterator[None]:
    """Say where the draft was named that cannot work, where that was not on the command line."""
    try:
        yield
    except PairError as error:
        if said_in := _said_in(options, "draft"):
            raise PairError(f"{said_in}: {error.message}", error.hint) from None
        raise


def stdin_is_terminal() -> bool:
    """Say whether a person types at stdin."""
    return sys.stdin is not None and sys.stdin.isatty()
