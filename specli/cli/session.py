"""From command-line options to a loaded session, telling the user what happens."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

from specli.assemble import Pair, Session, open_session
from specli.cli.downloads import Downloads
from specli.cli.interrupt import Interrupt
from specli.cli.options import ModelOptions
from specli.cli.output import HumanOutput, JsonOutput, Output
from specli.cli.streams import say
from specli.cli.waiting import Waiting
from specli.config import load_config, pair_key
from specli.errors import Interrupted
from specli.models.registry import Entry, load_registry
from specli.models.store import Located, fetch_missing, is_path, look_up
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
    asked, options = options, with_choices(options)
    settings = replace(options.settings(), grammar=grammar)
    output: Output = JsonOutput() if options.json else HumanOutput(options.stats, conversation)
    interrupt, waiting = Interrupt(), Waiting()
    if options.draft == "none" and asked.draft is None:
        say("hint", "config.toml says not to speculate here; --draft or --draft-tokens N does")
    pair = find_pair(options)
    with ExitStack() as stack:
        with interrupt.listening(), closing(waiting):
            waiting.show(f"loading {pair.target.name}", 0.0)
            opened = open_session(
                pair,
                settings,
                interrupt,
                lambda name, share: waiting.show(f"loading {name}", share),
            )
            session = stack.enter_context(opened)
        if interrupt():
            raise Interrupted("interrupted")
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
    registry = load_registry()
    if options.target is None:
        say("hint", f"{DEFAULT_TARGET}, a very small model, answers; choose another with --target")
    with Downloads() as downloads:
        target = look_up(options.target or DEFAULT_TARGET, registry, options.offline)
        wanted = [draft or _registered(target.entry) for draft in drafts]
        names = [name for name in dict.fromkeys(wanted) if name not in ("ngram", "none")]
        found = [target, *(look_up(name, registry, options.offline) for name in names)]
        located, *others = fetch_missing(found, downloads.show, Interrupt().listening)
    by_name = dict(zip(names, others, strict=True))
    return located, [by_name.get(name, name) for name in wanted]


def _registered(entry: Entry | None) -> str:
    """Return what guesses for a target unless the user says otherwise."""
    if entry is None:
        return "ngram"
    if entry.method in ("mtp", "eagle3"):
        said = f"its {entry.method.upper()} head cannot be used yet: ngram drafts"
        say("hint", f"{entry.alias}: {said}")
        return "ngram"
    return entry.draft


def with_choices(options: ModelOptions) -> ModelOptions:
    """Fill in what the user has chosen for this target for good, where no flag says otherwise.

    How much to guess is chosen for the draft beside it, and holds for no other. Whoever says how
    much does not want what was chosen to be nothing.
    """
    reference = options.target or DEFAULT_TARGET
    choice = load_config().pairs.get(pair_key(reference, is_path(reference)))
    if choice is None or (choice.draft == "none" and options.draft_tokens is not None):
        return options
    draft = choice.draft if options.draft is None else options.draft
    tokens = choice.draft_tokens if draft == choice.draft else None
    return replace(options, draft=draft, draft_tokens=options.draft_tokens or tokens)


def with_guesses(options: ModelOptions) -> ModelOptions:
    """Fill in what the user has chosen for this target, unless that was not to speculate.

    For commands that are about speculation, and can find that choice to be wrong.
    """
    chosen = with_choices(options)
    return options if options.draft is None and chosen.draft == "none" else chosen


def stdin_is_terminal() -> bool:
    """Say whether a person types at stdin."""
    return sys.stdin is not None and sys.stdin.isatty()
