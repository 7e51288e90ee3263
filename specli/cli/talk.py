"""A conversation: what was said, what is kept of it, and how the next message is answered."""

import sys
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from specli.chat import AnswerEvent, Done, Text
from specli.cli.current import Current
from specli.cli.screen import for_terminal
from specli.cli.streams import one_file, say, tell
from specli.cli.tracing import TracePage
from specli.cli.waiting import Waiting
from specli.conversation_files import Journal, conversations_folder, new_id
from specli.conversations import Conversation, Turn, now
from specli.errors import UsageError
from specli.kv_state import load_state, save_state, state_file
from specli.overflow import Overflow, Window
from specli.text import shortened

_LONG = 10**8  # bytes; fewer are written before a bar could be seen
_N_SHOWN, _SHOWN = 3, 200  # turns, and characters of each, that are shown where one goes on


class Talk:
    """The state of a conversation, for the commands to change."""

    id: str
    created: str
    journal: Journal

    def __init__(
        self, current: Current, page: TracePage, overflow: Overflow, system: str, *, keep: bool
    ) -> None:
        """keep: write down what is said."""
        self.current = current
        self.page = page
        self.turns: list[Turn] = []
        self.system = system
        self.attached: dict[Path, str] = {}  # texts that go before the next message
        self._made: object = None  # all that decided on the last answer, but chance
        self.last: Done | None = None
        self._overflow = overflow
        self._keep = keep
        self._begin()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the last answer."""
        return self.last is not None and self.last.reason == "interrupted"

    @property
    def room_hint(self) -> str:
        """What makes room in the context."""
        drop = "" if self._overflow == "drop" else ", --overflow drop forgets the oldest turns"
        return f"/reset forgets the conversation, --ctx holds more{drop}"

    @property
    def would_repeat(self) -> bool:
        """Whether the last message, answered again, gets the same answer: nothing is drawn."""
        greedy = self.current.ready.settings.sampling.temperature == 0
        return greedy and self._made is not None and self._made == self._makes()

    def ask(self, text: str) -> None:
        """Answer a message, what was attached before it. Raises SpecliError."""
        text = "\n\n".join([*self.attached.values(), text])
        self.attached.clear()
        self.journal.user(text)
        self.turns.append(Turn(text))
        self._answer()

    def retry(self) -> None:
        """Answer the last message again. Raises SpecliError."""
        turn = self._take_back()
        self.journal.note("retry")
        self.turns.append(Turn(turn.user))
        self._answer()

    def undo(self) -> Turn:
        """Forget the last message and its answer. Raises UsageError where there is none."""
        turn = self._take_back()
        self._made = None
        self.journal.note("undo")
        return turn

    def set_system(self, text: str) -> None:
        """Set the system message, from the next answer on."""
        self.system = text
        self.journal.note("system", text=text)

    def load(self, **models: str | None) -> str:
        """Let other models answer: target, draft, as options have them. Raises SpecliError.

        Returns what the next answer has to wait for, "" for nothing.
        """
        remembers = self.current.reload(self.current.options.changed(**models))
        self.note_models()
        session = self.current.ready.session
        if not any(turn.answered for turn in self.turns):
            return ""
        if not remembers:
            return "the conversation is read again before the next answer"
        has_draft = session.method in ("draft", "both")
        return "it reads the conversation before its first guess" if has_draft else ""

    def note_models(self) -> None:
        """Write down that another pair answers; a page goes on where it has the same tokens."""
        self.page.follow(self.current.ready)
        self.journal.note("models", **self.current.references)

    def reset(self) -> None:
        """Begin anew, with the same system message. What was said stays in its file."""
        self.journal.close()
        self.turns.clear()
        self.attached.clear()
        self._begin()

    def go_on(self, whole: Conversation, journal: Journal | None = None) -> None:
        """Take up a conversation. journal: its file; None to begin another one with it."""
        if journal and not self._keep:
            journal.close()
            journal = None
        self.journal.close()
        self.turns, self.system = list(whole.turns), whole.system
        if journal:
            self.id, self.created, self.journal = whole.id, whole.created, journal
            journal.on_failure = self._not_kept
        else:
            self._begin()
            self.journal.turns(whole.turns)
        self._window, self._made = self._new_window(whole.n_dropped), None
        if whole.id:
            self.current.restore(load_state(state_file(whole.id), self.current.identity))

    def whole(self) -> Conversation:
        """Return all of it, to be given away."""
        return Conversation(
            self.id,
            self.created,
            target=self.current.references["target"],
            draft=self.current.references["draft"],
            system=self.system,
            settings=self._settings(),
            turns=tuple(self.turns),
            changed=now(),
        )

    def leave(self) -> str:
        """Keep what the next chat needs to go on at once; return the name of what is kept.

        "" where there is nothing to go on with.
        """
        kept = bool(self.turns) and self.journal.kept
        with closing(Waiting()) as waiting:
            if kept and (state := self.current.state()):
                if state.data.size > _LONG:
                    waiting.show("keeping what the model remembers", 0.0)
                save_state(state_file(self.id), state)
        self.journal.close()
        return self.id if kept else ""

    def _not_kept(self, error: OSError) -> None:
        place = conversations_folder()
        say("warning", f"{place}: the conversation is not kept: {error.strerror or error}")
        self._keep = False

    def _take_back(self) -> Turn:
        if not self.turns:
            raise UsageError("nothing has been said yet")
        return self.turns.pop()

    def _answer(self) -> None:
        ready, self.last, self._made = self.current.ready, None, None
        answerer, max_tokens = ready.session.answerer, ready.settings.max_tokens
        with ready.interrupt.listening():
            events = self._window.reply(answerer, self.system, self.turns, max_tokens)
            self.page.begin(self.turns[-1].user, ready)
            for event in events:
                self.page.add(event)
                self._keep_event(event)
                ready.output.event(event)
        self.page.save()
        if self.interrupted and not self.turns[-1].answered:
            say("hint", "/retry answers the message, /undo forgets it")
        elif not self.interrupted:
            self._made = self._makes()
        if self.last and self.last.reason == "context":
            say("warning", f"the context is full; {self.room_hint}")

    def _makes(self) -> object:
        """Return all that decides on an answer, but chance."""
        ready = self.current.ready
        target = ready.session.pair.target.path
        return len(self.turns), self.system, target, ready.settings.sampling

    def _keep_event(self, event: AnswerEvent) -> None:
        """Take in what comes of an answer, piece by piece: whatever breaks it, that much is had."""
        turn = self.turns[-1]
        if isinstance(event, Text):
            self.journal.text(event.text, event.thought)
            key = "thought" if event.thought else "answer"
            self.turns[-1] = replace(turn, **{key: getattr(turn, key) + event.text})
        elif isinstance(event, Done):
            self.last = event
            self.journal.done(event.reason, event.stats.as_dict())
            self.turns[-1] = replace(turn, reason=event.reason)

    def _begin(self) -> None:
        """Begin a conversation, with a file of its own where one is wanted."""
        self.id, self.created = new_id(), now()
        self.journal = self._new_journal()
        self._window = self._new_window(0)

    def _new_journal(self) -> Journal:
        head: dict[str, Any] = {
            "id": self.id,
            "created": self.created,
            **self.current.references,
            "system": self.system,
            "settings": self._settings(),
        }
        journal = Journal(conversations_folder() / f"{self.id}.jsonl" if self._keep else None, head)
        journal.on_failure = self._not_kept
        return journal

    def _new_window(self, n_dropped: int) -> Window:
        def on_drop(n: int) -> None:
            if one_file() and self.turns[-1].answer[-1:] not in ("", "\n"):
                tell("")  # it happens in the midst of an answer's line
            turns = "turn was" if n == 1 else "turns were"
            say("context", f"full; the oldest {n} {turns} dropped")
            self.journal.note("dropped", n_turns=self._window.n_dropped)

        return Window(self._overflow, n_dropped, on_drop)

    def _settings(self) -> dict[str, Any]:
        ready = self.current.ready
        settings = ready.settings
        return {
            "k": settings.k,
            **asdict(settings.sampling),
            "n_ctx": ready.session.n_ctx,
            "seed": settings.seed,
            "max_tokens": settings.max_tokens,
        }


def show(whole: Conversation) -> None:
    """Tell what was said last, in short."""
    if whole.n_damaged:
        n = whole.n_damaged
        say("note", f"{n} torn line{'s' if n > 1 else ''} of the file could not be read")
    if len(whole.turns) > _N_SHOWN:
        tell(f"... {len(whole.turns) - _N_SHOWN} earlier")
    for turn in whole.turns[-_N_SHOWN:]:
        tell(f"> {_short(turn.user)}")
        if turn.answered:
            tell(_short(turn.answer) + (" (interrupted)" if turn.interrupted else ""))
        else:
            tell("(not answered; /retry does)" if turn is whole.turns[-1] else "(not answered)")


def _short(text: str) -> str:
    """Return the beginning of a text and, where it is long, its end, both in whole words."""
    line = " ".join(text.split())
    if len(line) > _SHOWN:
        end = line[-_SHOWN // 2 :]
        line = f"{shortened(line, _SHOWN // 2)} {end.partition(' ')[2] or end}"
    return for_terminal(line, sys.stderr.encoding)
