"""What run, chat and trace keep of an answer's rounds, and the page that becomes of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from specli.cli.streams import say

if TYPE_CHECKING:
    from specli.chat import AnswerEvent
    from specli.cli.session import Ready
    from specli.trace import Tracer

TraceFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE.html",
        help="Write a page that shows every round: guesses, verdicts, probabilities, times.",
        rich_help_panel="Output",
    ),
]


def check_trace(path: Path | None) -> None:
    """Raise SpecliError where the page cannot be written, before anything takes time."""
    if path is not None:
        from specli.pages.files import check_page

        check_page(path)


def new_tracer(ready: "Ready") -> "Tracer":
    """Return what keeps the rounds of a session."""
    from specli.trace import Tracer

    answerer = ready.session.answerer
    return Tracer(answerer.tokenizer, _about(ready), answerer.stats)


def _about(ready: "Ready") -> dict[str, str]:
    from specli.models.store import Located

    session, settings = ready.session, ready.settings
    draft = session.pair.draft
    return {
        "target": session.pair.target.name,
        "draft": draft.name if isinstance(draft, Located) else draft,
        "guesses in a round": "auto" if settings.k is None else str(settings.k),
        "temperature": f"{settings.sampling.temperature:g}",
        "seed": str(session.seed),
    }


class TracePage:
    """The page that becomes of a session where one is wanted; else nothing happens."""

    def __init__(self, path: Path | None, ready: "Ready") -> None:
        """path: None where none is wanted."""
        self._path = path
        self._tracer = None if path is None else new_tracer(ready)
        self._target = ready.session.pair.target.path
        self._is_new = False

    def follow(self, ready: "Ready") -> None:
        """Go on with the session that there is now; end where its tokens are other ones."""
        if self._tracer is None:
            return
        if ready.session.pair.target.path == self._target:
            self._tracer.go_on(ready.session.answerer.tokenizer, _about(ready))
        else:
            self.save()
            say("trace", f"{self._path} ends here, another target answers; /trace FILE begins one")
            self._path = self._tracer = None

    def begin(self, prompt: str, ready: "Ready") -> None:
        """Start an answer of the session that there is now."""
        self.follow(ready)
        if self._tracer:
            self._tracer.begin(prompt)

    def add(self, event: "AnswerEvent") -> None:
        """Take in an event of the answer that was started last."""
        if self._tracer:
            self._tracer.add(event)
            self._is_new = True

    def save(self) -> bool:
        """Write down all answers so far; say whether there are any. Raises SpecliError."""
        if self._path is None or self._tracer is None:
            return False
        from specli.pages.files import write_page
        from specli.pages.trace_page import trace_page

        trace = self._tracer.trace()
        if trace.answers and self._is_new:
            write_page(self._path, trace_page(trace))
            self._is_new = False
        return bool(trace.answers)

    def end(self) -> None:
        """Write what there is, and take nothing more in. Raises SpecliError."""
        if self.save():
            say("trace", str(self._path))
        self._path = self._tracer = None


@contextmanager
def traced(path: Path | None, ready: "Ready") -> Iterator[TracePage]:
    """Give a page to fill, and write it whatever happens: what there is of a broken answer, too."""
    page = TracePage(path, ready)
    try:
        yield page
    finally:
        page.end()
