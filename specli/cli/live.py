"""An answer on a terminal: set as Markdown, guesses marked, with a status line at its foot."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from specli.assemble import Session
from specli.chat import AnswerEvent, Done, Text
from specli.chat import Progress as PromptProgress
from specli.cli.markdown import Rendered, Step
from specli.cli.options import ModelOptions
from specli.cli.output import LONG_PROMPT, HumanOutput, JsonOutput, Output, Remarks
from specli.cli.screen import Screen, encodable
from specli.cli.status_line import DIM, RESET, fitted, numbers, reading, thinking, thought
from specli.cli.streams import say
from specli.cli.terminals import is_dumb
from specli.engine.stats import Stats
from specli.engine.types import Costs, Round
from specli.models.store import Located
from specli.settings import Settings
from specli.text import TerminalText

if TYPE_CHECKING:
    from specli.cli.typesetting import Typesetter

STATUS_S = 0.1  # the status line changes no more often


@dataclass(frozen=True, slots=True)
class Style:
    """How an answer is shown. think: show or hide what the model thinks before it answers."""

    with_stats: bool = True
    plain: bool = False
    show_drafts: bool = False
    think: str = "hide"
    colours: bool = True


@dataclass(frozen=True, slots=True)
class Gauges:
    """What the status line reads from the engine: tokens in the context, costs of a decode."""

    method: str
    drafter: str
    n_ctx: int
    n_used: Callable[[], int]
    costs: Callable[[], Costs | None]


def make_output(options: ModelOptions, conversation: bool) -> Output:
    """Return what shows a session, as the options and what stdout is want it."""
    if options.json:
        return JsonOutput()
    if not is_capable():
        if options.show_drafts:
            say("hint", "--show-drafts marks guesses on a terminal only")
        return HumanOutput(options.stats, conversation, options.think)
    colours = not os.environ.get("NO_COLOR")
    style = Style(options.stats, options.plain, options.show_drafts, options.think, colours)
    return LiveOutput(style, Screen())


def is_capable() -> bool:
    """Say whether stdout is a terminal that moves its cursor."""
    return sys.stdout.isatty() and bool(os.environ.get("TERM")) and not is_dumb()


class Body(Protocol):
    """Turns the text of an answer into what to write."""

    def feed(self, text: str, can_replace: bool, width: int) -> Step:
        """Take in more text."""

    def finish(self, can_replace: bool, width: int) -> Step:
        """Take note that nothing more comes."""


class Plain:
    """The text as it is."""

    def feed(self, text: str, can_replace: bool, width: int) -> Step:
        """Write it."""
        return Step(text)

    def finish(self, can_replace: bool, width: int) -> Step:
        """Write nothing."""
        return Step("")


class LiveOutput:
    """Shows answers on a terminal, a frame for each round. A status line stands under the text."""

    def __init__(
        self, style: Style, screen: Screen, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._style = style
        self._screen = screen
        self._clock = clock
        self._remarks = Remarks(style.with_stats)
        self._gauges = Gauges("none", "none", 0, lambda: 0, lambda: None)
        self._body = self._make_body()
        self._has_explained = False
        self._reset()

    def _make_body(self) -> Body:
        if self._style.plain or self._style.show_drafts:
            return Plain()
        return Rendered(self._make_typesetter)

    def _make_typesetter(self) -> "Typesetter":
        from specli.cli.typesetting import Typesetter

        return Typesetter(self._screen.encoding, self._style.colours)

    def _reset(self) -> None:
        """Forget the last answer."""
        self._stats = Stats(self._gauges.method)
        self._pieces: list[Text] = []
        self._k = 0
        self._started = self._clock()
        self._thought_since: float | None = None
        self._n_thought = 0
        self._status: list[str] = []
        self._phase = ""
        self._status_at = 0.0
        self._safe = TerminalText()

    def start(self, session: Session, settings: Settings) -> None:
        """Warn where speculation is off though it was wanted."""
        self._remarks.start(session, settings)
        draft, decoder = session.pair.draft, session.answerer.decoder
        drafter = draft.name if isinstance(draft, Located) else session.method
        n_used, costs = lambda: len(decoder.history), lambda: decoder.planner.costs()
        self.watch(Gauges(session.method, drafter, session.n_ctx, n_used, costs))
        if self._style.show_drafts and not self._has_explained:
            self._has_explained = True
            right, wrong = (mark(is_accepted, self._style.colours) for is_accepted in (True, False))
            marks = f"{right}guesses that were accepted{RESET}, {wrong}corrections{RESET}"
            self._screen.write(f"{marks}\n", rest="")

    def watch(self, gauges: Gauges) -> None:
        """Take the numbers of the status line from here."""
        self._gauges = gauges
        self._reset()

    def event(self, event: AnswerEvent) -> None:
        """Show an event. Texts wait for their round: it knows which of them are corrections."""
        self._screen.look()
        if isinstance(event, PromptProgress):
            if event.n_done == 0:
                self._reset()
            self._read(event)
        elif isinstance(event, Text):
            self._pieces.append(event)
        elif isinstance(event, Round):
            self._stats.add(event)
            self._k = event.n_drafted
            self._show(event)
        elif isinstance(event, Done):
            if self._pieces:
                self._show(None)
            self._end()
            self._remarks.warn(event)
            self._remarks.tell_stats(event)

    def close(self) -> None:
        """Leave whole lines, whatever happened to the answer."""
        self._screen.look()
        self._end()

    def resumed(self) -> None:
        """Notice that the cursor may be anywhere now."""
        self._screen.lose()

    def _end(self) -> None:
        if self._thought_since is not None:
            self._fold()
        if ends := self._safe.end():
            self._answer(ends)
        self._finish()
        self._reset()

    def _finish(self) -> None:
        """Complete the text so far, and end its line."""
        step = self._body.finish(self._screen.can_replace(), self._screen.width)
        self._screen.write(step.text, replaces=step.replaces, rest=step.rest)
        self._screen.end_line()

    def _read(self, progress: PromptProgress) -> None:
        if LONG_PROMPT < progress.n_total > progress.n_done:
            seconds = self._clock() - self._started
            said = reading(progress.n_done, progress.n_total, seconds)
            self._screen.write("", self._foot("reading", lambda: said))

    def _show(self, done: Round | None) -> None:
        """Show the texts of a round."""
        pieces, self._pieces = self._pieces, []
        thoughts = [piece for piece in pieces if piece.thought]
        said = [piece for piece in pieces if not piece.thought]
        if thoughts:
            self._think(thoughts, done, is_over=bool(said))
        if said:
            if self._thought_since is not None:
                self._fold()
            is_corrected = done is not None and done.n_accepted < done.n_drafted
            self._answer("".join(self._marked(p, is_corrected and p is pieces[-1]) for p in said))
        elif not thoughts:
            self._screen.write("", self._current_foot())

    def _answer(self, text: str) -> None:
        step = self._body.feed(text, self._screen.can_replace(), self._screen.width)
        self._screen.write(step.text, self._current_foot(), replaces=step.replaces, rest=step.rest)

    def _shown(self, text: str) -> str:
        """Return some more of the answer's text as this terminal shows it."""
        return encodable(self._safe.feed(text), self._screen.encoding)

    def _marked(self, piece: Text, is_corrected: bool) -> str:
        """Return a text, with marks where guesses are to be seen."""
        text = self._shown(piece.text)
        if not self._style.show_drafts or not (piece.drafted or is_corrected):
            return text
        return f"{mark(piece.drafted, self._style.colours)}{text}{RESET}"

    def _think(self, thoughts: list[Text], done: Round | None, is_over: bool) -> None:
        """Show what the model thinks, or that it does."""
        if self._thought_since is None:
            self._finish()
            self._thought_since, self._n_thought = self._clock(), 0
        self._n_thought += len(thoughts) if is_over or not done else len(done.tokens)
        text = ""
        if self._style.think == "show":
            said = "".join(piece.text for piece in thoughts)
            text = f"{DIM}{self._shown(said)}{RESET}"
        self._screen.write(text, self._current_foot())

    def _fold(self) -> None:
        """End the thoughts: where they are hidden, one line stands for them."""
        said = thought(self._thought_s, self._n_thought)
        self._thought_since = None
        if ends := self._safe.end():
            self._screen.write(ends)
        self._screen.end_line()
        hidden = self._style.think != "show"
        self._screen.write(f"{DIM}{said}{RESET}\n" if hidden else "\n", rest="")

    def _current_foot(self) -> str:
        if self._thought_since is None:
            return self._foot("answering", self._numbers)
        return self._foot("thinking", self._thinking)

    def _foot(self, phase: str, parts: Callable[[], list[str]]) -> str:
        """Return the status line; in one phase it says something new only so often."""
        if not self._screen.status_width:
            return ""
        now = self._clock()
        if phase != self._phase or now - self._status_at >= STATUS_S:
            self._phase, self._status, self._status_at = phase, parts(), now
        return fitted(self._status, self._screen.status_width, self._screen.encoding)

    def _thinking(self) -> list[str]:
        return [thinking(self._thought_s, self._n_thought), *self._numbers()]

    @property
    def _thought_s(self) -> float:
        return self._clock() - (self._thought_since or 0.0)

    def _numbers(self) -> list[str]:
        if not self._style.with_stats or not self._stats.draft_rounds:
            return []
        gauges = self._gauges
        self._stats.costs = gauges.costs()
        return numbers(self._stats, self._k, gauges.n_used(), gauges.n_ctx, gauges.drafter)


def mark(is_accepted: bool, colours: bool) -> str:
    """Return the style of an accepted guess or of a correction: other ones without colours."""
    if is_accepted:
        return "\x1b[32m" if colours else "\x1b[4m"
    return "\x1b[1;31m" if colours else "\x1b[7m"
