"""An answer that goes to a file, whole or not at all."""

from pathlib import Path

from specli.assemble import Session
from specli.chat import AnswerEvent, Done, Text
from specli.cli.output import stats_line
from specli.cli.streams import tell
from specli.cli.waiting import Waiting
from specli.engine.types import Round
from specli.errors import UsageError
from specli.files import unwritable, write_whole
from specli.models.header import is_part
from specli.models.store import Located
from specli.settings import Settings


class AnswerFile:
    """The Output that --output names: the text in a file, the rest on stderr."""

    def __init__(self, path: Path, with_stats: bool) -> None:
        self.path = path
        self.is_written = False
        self._with_stats = with_stats
        self._waiting = Waiting()
        self._settings = Settings()
        self._text = ""
        self._n_tokens = 0

    def start(self, session: Session, settings: Settings) -> None:
        """Remember how it was asked for. Raises UsageError where a model lies in its place."""
        self._settings = settings
        for model in (session.pair.target, session.pair.draft):
            if isinstance(model, Located) and is_part(self.path, model.path):
                raise UsageError(f"{self.path}: is the model itself", "name another file with -o")

    def event(self, event: AnswerEvent) -> None:
        """Collect text; write it when the answer has ended by itself. Raises SpecliError."""
        if isinstance(event, Text):
            self._text += "" if event.thought else event.text
        elif isinstance(event, Round):
            self._n_tokens += len(event.tokens)
            share = self._n_tokens / (self._settings.max_tokens or 2 * self._n_tokens)
            self._waiting.show(f"{self._n_tokens} tokens", min(share, 1.0))
        elif isinstance(event, Done):
            self._waiting.close()
            if event.reason != "interrupted":
                try:
                    write_whole(self.path, self._text.encode())
                    self.is_written = True
                except OSError as error:
                    raise unwritable(self.path, error) from None
            if self._with_stats:
                tell(stats_line(event.stats, self._settings.k, event.reason))

    def close(self) -> None:
        """Take the progress bar away."""
        self._waiting.close()

    def resumed(self) -> None:
        """Go on after a stop."""
