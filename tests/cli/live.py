"""Answers shown without a model: events made up, a screen to look at, a clock to turn."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyte

from specli.chat import AnswerEvent, Done, Progress, Text
from specli.cli.live import Gauges, LiveOutput, Style
from specli.cli.screen import Screen
from specli.engine.stats import Stats
from specli.engine.types import Costs, Guess, Round
from tests.cli.terminal import Strict

ROUND_S = 0.005  # 200 rounds a second
STATUS = re.compile(r"tok/s|thinking \d|reading the prompt")


STATUS_ON = Style()


class Shown:
    """A LiveOutput on a screen. after: called after every write."""

    def __init__(
        self,
        style: Style = STATUS_ON,
        columns: int = 80,
        lines: int = 24,
        encoding: str = "utf-8",
        has_status: bool = True,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        self.screen = Strict(columns, lines)
        self.stream = pyte.Stream(self.screen)
        self.now = 0.0
        self.frames: list[str] = []
        self.after = after
        self.n_used = 0
        view = Screen(self._write, self._size, encoding, has_status)
        self.output = LiveOutput(style, view, lambda: self.now)
        costs = Costs({1: 0.01}, 0.001)
        self.output.watch(Gauges("both", "small-draft", 4096, lambda: self.n_used, lambda: costs))

    def _size(self) -> tuple[int, int]:
        return self.screen.columns, self.screen.lines

    def _write(self, frame: str) -> None:
        self.frames.append(frame)
        self.stream.feed(frame.replace("\n", "\r\n"))  # as the terminal's driver does
        self.after()

    def play(self, events: Iterable[AnswerEvent]) -> None:
        for event in events:
            self.output.event(event)
            if isinstance(event, Round):
                self.now += ROUND_S
                self.n_used += len(event.tokens)

    @property
    def text_rows(self) -> list[str]:
        """All rows of the answer, with those that have scrolled away, without the status line."""
        return [*self.screen.past, *self.screen.rows[: self.screen.cursor.y + 1]]

    @property
    def all_rows(self) -> list[str]:
        """All there is and was."""
        return [*self.screen.past, *self.screen.rows]

    @property
    def foot_rows(self) -> list[str]:
        """What stands below the cursor."""
        return self.screen.rows[self.screen.cursor.y + 1 :]


def one_round(
    pieces: Sequence[str], n_drafted: int = 0, thought: bool = False
) -> list[AnswerEvent]:
    """Return the events of a round whose last token alone is the target's own."""
    n_accepted = len(pieces) - 1
    n_drafted = max(n_drafted, n_accepted)
    texts = [Text(piece, i < n_accepted, thought) for i, piece in enumerate(pieces) if piece]
    guesses = (Guess(1, None, 1.0),) * n_drafted
    seconds = 0.001, 0.003, 0.001
    return [*texts, Round((1,) * len(pieces), guesses, n_accepted, *seconds)]


def answer(text: str, size: int = 4, thought: bool = False) -> Iterator[AnswerEvent]:
    """Yield the events of an answer whose tokens are all of one size, in characters."""
    for i in range(0, len(text), size):
        yield from one_round([text[i : i + size]], thought=thought)


def prompt(n_tokens: int) -> Iterator[AnswerEvent]:
    """Yield the events of a prompt that is read in four steps."""
    for n_done in range(0, n_tokens + 1, n_tokens // 4):
        yield Progress(n_done, n_tokens)


DONE = Done("eog", Stats("both"))
