"""What happened in an answer, round by round: kept from its events, to be looked at."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from specli.chat import AnswerEvent, Done, Tokenizer
from specli.engine.stats import Stats
from specli.engine.types import Guess, Round

# rejected: the target said something else instead. again: it was rejected, and then the target
# drew the same token itself, or it ended the answer; then it counts as the target's own. skipped:
# it stands behind one that was not accepted, or behind the end of the answer.
State: TypeAlias = Literal["accepted", "rejected", "again", "skipped"]
SCHEMA = 1
_THEN = ", then "


@dataclass(frozen=True, slots=True)
class TracedGuess:
    """A guess and what became of it.

    q: the drafter's probability of it, None where it had no choice (n-gram, arg-max). p: the
    target's, None where it did not look.
    """

    token: int
    source: str
    confidence: float
    q: float | None
    p: float | None
    state: State


@dataclass(frozen=True, slots=True)
class TracedRound:
    """A pass of the target. own: its own token, last in the round; None where a stop cut it off."""

    guesses: tuple[TracedGuess, ...]
    n_accepted: int
    own: int | None
    draft_s: float
    target_s: float
    host_s: float

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.draft_s + self.target_s + self.host_s

    @property
    def tokens(self) -> tuple[int, ...]:
        """What it brought."""
        accepted = (guess.token for guess in self.guesses[: self.n_accepted])
        return (*accepted, *([] if self.own is None else [self.own]))


@dataclass(slots=True)
class TracedAnswer:
    """An answer. reason: why it ended, "" where it broke off."""

    prompt: str
    stats: Stats
    rounds: list[TracedRound] = field(default_factory=list)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """Some answers of one session. about: models and settings.

    pieces: the bytes of each token. controls: tokens that are no text; of these, the names.
    """

    about: Mapping[str, str]
    answers: tuple[TracedAnswer, ...]
    pieces: Mapping[int, bytes]
    controls: frozenset[int] = frozenset()

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as plain data; bytes that are no UTF-8 are written as \\xNN."""
        texts = {t: piece.decode("utf-8", "backslashreplace") for t, piece in self.pieces.items()}
        answers = [
            {
                "prompt": answer.prompt,
                "reason": answer.reason or None,
                "stats": answer.stats.as_dict(),
                "rounds": [asdict(one) for one in answer.rounds],
            }
            for answer in self.answers
        ]
        return {"schema": SCHEMA, "about": dict(self.about), "tokens": texts, "answers": answers}


class Tracer:
    """Keeps of each round what is shown, and lets go of its distributions at once."""

    def __init__(self, tokenizer: Tokenizer, about: Mapping[str, str], stats: Stats) -> None:
        """stats: fresh ones, as an Answerer has them."""
        self._tokenizer = tokenizer
        self._about = about
        self._stats = stats
        self._answers: list[TracedAnswer] = []
        self._pieces: dict[int, bytes] = {}
        self._controls: set[int] = set()

    def go_on(self, tokenizer: Tokenizer, about: Mapping[str, str]) -> None:
        """Take the next answers from another session of the same target.

        tokenizer: names the same tokens. about: what differs there is told after what was before.
        """
        self._tokenizer = tokenizer
        self._about = {
            name: said if said.split(_THEN)[-1] == about[name] else f"{said}{_THEN}{about[name]}"
            for name, said in self._about.items()
        }

    def begin(self, prompt: str) -> None:
        """Start an answer."""
        stats = Stats(self._stats.method, self._stats.reason_off)
        self._answers.append(TracedAnswer(prompt, stats))

    def add(self, event: AnswerEvent) -> None:
        """Take in an event of the answer that was started last."""
        answer = self._answers[-1]
        if isinstance(event, Round):
            answer.stats.add(event)
            answer.rounds.append(traced(event))
            for token in (*event.tokens, *(guess.token for guess in event.guesses)):
                if token not in self._pieces:
                    self._name(token)
        elif isinstance(event, Done):
            answer.stats, answer.reason = event.stats, event.reason

    def trace(self) -> Trace:
        """Return what there is so far: the answers that brought at least one token."""
        answers = tuple(answer for answer in self._answers if answer.rounds)
        return Trace(self._about, answers, self._pieces, frozenset(self._controls))

    def _name(self, token: int) -> None:
        """Remember what a token stands for."""
        self._pieces[token] = self._tokenizer.piece(token)
        if not self._pieces[token]:
            self._pieces[token] = self._tokenizer.text(token)
            self._controls.add(token)


def traced(done: Round) -> TracedRound:
    """Return what is kept of a round."""
    n = done.n_accepted
    own = done.tokens[n] if n < len(done.tokens) else None

    def state(i: int, guess: Guess) -> State:
        if i < n:
            return "accepted"
        if i > n or own is None:
            return "skipped"
        return "again" if guess.token == own else "rejected"

    guesses = tuple(
        TracedGuess(
            guess.token,
            guess.source,
            guess.confidence,
            guess.q.prob(guess.token) if guess.q else None,
            done.p[i] if i < len(done.p) else None,
            state(i, guess),
        )
        for i, guess in enumerate(done.guesses)
    )
    return TracedRound(guesses, n, own, done.draft_s, done.target_s, done.host_s)
