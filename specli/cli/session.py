"""From command-line options to a loaded session, telling the user what happens."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from specli.assemble import Pair, Session, open_session
from specli.cli.downloads import Downloads
from specli.cli.interrupt import Interrupt
from specli.cli.options import ModelOptions
from specli.cli.output import HumanOutput, JsonOutput, Output, Waiting
from specli.cli.streams import say
from specli.errors import Interrupted
from specli.models.registry import load_registry
from specli.models.store import fetch_missing, look_up
from specli.settings import DEFAULT_TARGET


@dataclass(frozen=True, slots=True)
class Ready:
    """A loaded session, the output that shows it, and the ear for Ctrl-C."""

    session: Session
    output: Output
    interrupt: Interrupt


@contextmanager
def load_session(options: ModelOptions, conversation: bool = False) -> Iterator[Ready]:
    """Check the options, find the files, load them, say what starts.

    conversation: several answers follow each other, so each ends its line.
    """
    settings = options.settings()
    output: Output = JsonOutput() if options.json else HumanOutput(options.stats, conversation)
    interrupt, waiting = Interrupt(), Waiting()
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
        yield Ready(session, output, interrupt)


def find_pair(options: ModelOptions) -> Pair:
    """Locate target and draft; where no draft is named, the registered one, else n-gram."""
    registry = load_registry()
    if options.target is None:
        say("hint", f"{DEFAULT_TARGET}, a very small model, answers; choose another with --target")
    with Downloads() as downloads:
        found = [look_up(options.target or DEFAULT_TARGET, registry, options.offline)]
        entry = found[0].entry
        wanted = options.draft or (entry.draft if entry else "ngram")
        if entry and not options.draft and entry.method in ("mtp", "eagle3"):
            say(
                "hint",
                f"{entry.alias}: its {entry.method.upper()} head cannot be used yet: ngram drafts",
            )
            wanted = "ngram"
        if wanted not in ("ngram", "none"):
            found.append(look_up(wanted, registry, options.offline))
        target, *drafts = fetch_missing(found, downloads.show, Interrupt().listening)
    return Pair(target, drafts[0] if drafts else wanted)


def stdin_is_terminal() -> bool:
    """Say whether a person types at stdin."""
    return sys.stdin is not None and sys.stdin.isatty()
