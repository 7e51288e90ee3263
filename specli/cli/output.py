"""What a command says: the answer on stdout, everything else on stderr."""

import json
import sys
from typing import Protocol

from specli.assemble import Session, start_of
from specli.chat import AnswerEvent, Done, Text
from specli.chat import Progress as PromptProgress
from specli.cli.stats_words import UNREAD
from specli.cli.streams import one_file, say, tell, write
from specli.cli.waiting import Waiting
from specli.engine.stats import Stats
from specli.engine.types import Reason
from specli.events import Event
from specli.settings import Settings
from specli.text import TerminalText

LONG_PROMPT = 64  # tokens; a shorter one is evaluated before a bar could be seen


class Output(Protocol):
    """Shows one session to whoever reads it."""

    def start(self, session: Session, settings: Settings) -> None:
        """Say what is about to answer."""

    def event(self, event: AnswerEvent) -> None:
        """Show an event of an answer."""

    def close(self) -> None:
        """Take away what is there only for now, however the answer ended."""

    def resumed(self) -> None:
        """Notice that the terminal was somebody else's for a while."""


class Remarks:
    """What is said beside an answer: why speculation is off, each reason once; statistics."""

    def __init__(self, with_stats: bool) -> None:
        self._with_stats = with_stats
        self._k: int | None = None
        self._said: set[str] = set()

    def start(self, session: Session, settings: Settings) -> None:
        """Warn where speculation is off though it was wanted."""
        self._k = settings.k
        self._warn(session.reason_off)

    def warn(self, done: Done) -> None:
        """Warn where speculation went off in an answer."""
        self._warn(done.stats.reason_off)
        if done.stats.draft_muted and not done.stats.reason_off:
            self._warn(done.stats.draft_muted, "only n-grams guess")

    def tell_stats(self, done: Done) -> None:
        """Tell the statistics of an answer, where they are wanted."""
        if self._with_stats:
            tell(stats_line(done.stats, self._k, done.reason))

    def _warn(self, reason: str, what: str = "speculation is off") -> None:
        if reason and reason not in self._said:
            self._said.add(reason)
            say("warning", f"{what}: {reason}")


class HumanOutput:
    """The answer as text; a line of statistics after it."""

    def __init__(self, with_stats: bool, ends_lines: bool, think: str = "hide") -> None:
        """ends_lines: end each answer's last line, also in a pipe. think: show writes thoughts."""
        self._remarks = Remarks(with_stats)
        self._with_stats = with_stats
        self._waiting = Waiting()
        self._terminal = sys.stdout.isatty()
        self._ends_lines = ends_lines or self._terminal
        self._shows_thoughts = think == "show"
        self._in_thought = False
        self._last = "\n"
        self._safe = TerminalText()

    def start(self, session: Session, settings: Settings) -> None:
        """Warn where speculation is off though it was wanted."""
        self._remarks.start(session, settings)

    def event(self, event: AnswerEvent) -> None:
        """Write text as it comes, byte for byte into a pipe, harmless on a terminal."""
        if isinstance(event, PromptProgress):
            if event.n_total > LONG_PROMPT and event.n_done < event.n_total:
                self._waiting.show("reading the prompt", event.n_done / event.n_total)
        elif isinstance(event, Text):
            if self._shows_thoughts or not event.thought:
                self._text(event)
        elif isinstance(event, Done):
            self._done(event)

    def close(self) -> None:
        """Take the progress bar away."""
        self._waiting.close()

    def resumed(self) -> None:
        """Go on after a stop."""

    def _text(self, event: Text) -> None:
        self._waiting.close()
        if self._in_thought and not event.thought:
            write(self._safe.end() + ("\n" if self._last.endswith("\n") else "\n\n"))
        self._in_thought = event.thought
        self._last = event.text
        write(self._safe.feed(event.text) if self._terminal else event.text)

    def _done(self, done: Done) -> None:
        self._waiting.close()
        self._in_thought = False
        self._remarks.warn(done)
        if self._ends_lines:
            write(self._safe.end() + "\n")
        if self._with_stats and one_file() and not self._ends_lines and self._last[-1:] != "\n":
            tell("")
        self._remarks.tell_stats(done)


class JsonOutput:
    """Events as JSON lines."""

    def start(self, session: Session, settings: Settings) -> None:
        """Write the start event."""
        self._write(start_of(session, settings))

    def event(self, event: AnswerEvent) -> None:
        """Write a text or a done event."""
        if isinstance(event, Text | Done):
            self._write(event)

    def close(self) -> None:
        """Do nothing: each line is whole."""

    def resumed(self) -> None:
        """Go on after a stop."""

    def _write(self, event: Event) -> None:
        write(json.dumps(event.as_dict(), ensure_ascii=sys.stdout.isatty()) + "\n")


def stats_line(stats: Stats, k: int | None, reason: Reason) -> str:
    """Return the statistics of an answer in one line."""
    parts = [f"{stats.predicted_n} tokens at {stats.predicted_per_second:.1f}/s"]
    if not stats.predicted_n:
        parts, head = [], "nothing was answered"
    elif stats.method == "none":
        head = f"speculation off{f' ({stats.reason_off})' if stats.reason_off else ''}"
    elif k is None and stats.plain_rounds == stats.draft_rounds:
        head = f"speculation off ({stats.method}: {_why_plain(stats)})"
    else:
        head = f"speculation on ({stats.method}, {_k(stats, k)})"
        if stats.gain:
            parts.append(f"about {stats.gain:.1f} times plain decoding")
        if stats.draft_n:
            rate = stats.draft_n_accepted / stats.draft_n
            guesses = "1 guess" if stats.draft_n == 1 else f"{stats.draft_n} guesses"
            parts.append(f"{rate:.0%} of {guesses} accepted")
        parts.append(f"{stats.mean_tokens_per_round:.2f} tokens/round")
        if k is not None and stats.lost:
            parts.append("slower than plain decoding, which -k auto would find out")
    parts.append(f"prompt {stats.prompt_n} new + {stats.cache_n} cached in {stats.prompt_s:.2f} s")
    if reason in _CUT_SHORT:
        parts.append(_CUT_SHORT[reason])
    return f"{head}: {', '.join(parts)}"


def _k(stats: Stats, k: int | None) -> str:
    if k is not None:
        return f"k={k}"
    said = f"k auto, {stats.mean_k:.1f} on average"
    if 2 * stats.plain_rounds > stats.draft_rounds:
        share = stats.plain_rounds / stats.draft_rounds
        said += f", no guess in {share:.0%} of the rounds: {_why_plain(stats)}"
    return said


def _why_plain(stats: Stats) -> str:
    if stats.method == "ngram":
        return "little is repeated"
    if stats.draft_unread_n:
        return UNREAD
    return "a guess costs more here than it brings"


_CUT_SHORT: dict[Reason, str] = {
    "length": "cut by --max-tokens",
    "context": "cut by the full context",
    "interrupted": "interrupted",
}
