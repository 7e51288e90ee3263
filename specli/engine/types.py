"""The shapes that the engine's parts hand to each other."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Row: TypeAlias = NDArray[np.float32]  # logits of one position, (n_vocab,)
Rows: TypeAlias = NDArray[np.float32]  # logits of some positions, (n_rows, n_vocab)
Reason: TypeAlias = Literal["eog", "length", "stop", "context", "interrupted"]
Choice: TypeAlias = Literal["found", "draft", "stop"]


@dataclass(frozen=True, slots=True)
class Dist:
    """A probability distribution over tokens; those that it leaves out cannot be drawn.

    ids: (m,) int32, strictly increasing. weights: (m,) floats; a token's probability is its
    weight / total, which nobody works out for a whole vocabulary where few are asked for.
    """

    ids: NDArray[np.int32]
    weights: NDArray[np.floating]
    total: float = 1.0

    @property
    def p(self) -> NDArray[np.floating]:
        """The probabilities, (m,)."""
        return self.weights / self.total

    def find(self, tokens: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.bool]]:
        """Return where tokens stand in ids, and which of them do; the others stand anywhere."""
        last = len(self.ids) - 1
        is_everything = self.ids[last] == last  # then each token stands at its own number
        at = tokens.astype(np.intp) if is_everything else np.searchsorted(self.ids, tokens)
        at = np.minimum(at, last)
        return at, self.ids[at] == tokens

    def at(self, tokens: NDArray[np.int32]) -> NDArray[np.floating]:
        """Return the probabilities of some tokens, increasing ones."""
        if len(self.ids) > tokens[-1] and self.ids[tokens[-1]] == tokens[-1]:
            return self.weights[tokens] / self.total  # nothing is left out before the last of them
        at, found = self.find(tokens)
        return np.where(found, self.weights[at] / self.total, 0.0)

    def prob(self, token: int) -> float:
        """Return the probability of one token."""
        at = bisect_left(self.ids, token)
        is_known = at < len(self.ids) and self.ids[at] == token
        return float(self.weights[at]) / self.total if is_known else 0.0

    def draw(self, rng: np.random.Generator) -> int:
        """Draw one token. Weights are not all zero; what has a weight of zero is never drawn."""
        if len(self.ids) == 1:
            return int(self.ids[0])
        # First a block of tokens, then one of the block: a sum over blocks is short and exact.
        first = 0
        weights = self.weights
        if len(weights) > _BLOCK:
            starts = np.arange(0, len(weights), _BLOCK)
            first = int(starts[_pick(np.add.reduceat(weights, starts), rng)])
            weights = weights[first : first + _BLOCK]
        return int(self.ids[first + _pick(weights, rng)])


_BLOCK = 256
_ONE = np.ones(1)
_ONE.setflags(write=False)


def _pick(weights: NDArray[np.floating], rng: np.random.Generator) -> int:
    total = weights.astype(np.float64).cumsum()
    return int(total.searchsorted(rng.random() * total[-1], side="right"))


def certain(token: int) -> Dist:
    """Return the distribution that holds one token only."""
    return Dist(np.array([token], np.int32), _ONE)


@dataclass(frozen=True, slots=True)
class Guess:
    """A token that a drafter proposes.

    q: the distribution it was drawn from; None where the drafter had no choice (n-gram, arg-max).
    confidence: the drafter's own idea, 0 to 1, of how likely the target is to agree. It may depend
    on q and on the tokens before, never on which token was drawn from q: a planner may drop this
    very guess for it, and dropping some tokens more often than others would bend the distribution.
    source: the drafter's name.
    """

    token: int
    q: Dist | None
    confidence: float
    source: str = "draft"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the target said of the guesses: how many it keeps, and one token of its own.

    token is the correction after a rejection, the bonus after none, or the accepted guess that
    ends the generation (which is then not counted in n_accepted). p: the target's probability of
    each guess that it looked at.
    """

    n_accepted: int
    token: int
    p: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefill:
    """Progress of the prompt: tokens evaluated so far, of those that are not cached."""

    n_done: int
    n_total: int
    n_cached: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Round:
    """One pass of the target: its accepted guesses and, last, its own token.

    guesses: all that it judged. p: the target's probability of each that it came to look at.
    """

    tokens: tuple[int, ...]
    guesses: tuple[Guess, ...]
    n_accepted: int
    draft_s: float
    target_s: float
    host_s: float
    p: tuple[float, ...] = ()

    @property
    def n_drafted(self) -> int:
        """How many guesses there were."""
        return len(self.guesses)

    def cut(self, n_tokens: int) -> "Round":
        """Return this round with only its first n_tokens tokens."""
        n_accepted = min(self.n_accepted, n_tokens)
        return replace(self, tokens=self.tokens[:n_tokens], n_accepted=n_accepted)


@dataclass(frozen=True, slots=True)
class Costs:
    """What a planner believes. target_s: seconds of a decode of n tokens. draft_s: of a guess."""

    target_s: dict[int, float]
    draft_s: float


@dataclass(frozen=True, slots=True)
class DraftPrefill:
    """A drafter has left a prompt for later. n_left: tokens of it that it has not read.

    seconds: that it read on for just now.
    """

    n_left: int
    seconds: float


@dataclass(frozen=True, slots=True)
class End:
    """Nothing more comes, and why."""

    reason: Reason


Event: TypeAlias = Prefill | DraftPrefill | Round | End


class Model(Protocol):
    """Weights and one KV sequence."""

    @property
    def n_ctx(self) -> int:
        """Most tokens that the sequence can hold."""

    @property
    def n_ctx_train(self) -> int:
        """Most tokens of a text that the model was trained on; 0 where its file does not say."""

    @property
    def n_batch(self) -> int:
        """Most tokens that one decode takes."""

    @property
    def n_rows(self) -> int:
        """Most rows of logits that one decode returns."""

    @property
    def prepares(self) -> bool:
        """Whether it prepares itself anew where a decode has not as many tokens as the last one.

        Where it does, tokens may be decoded beside those that are wanted, and dropped again.
        """

    @property
    def goes_on(self) -> bool:
        """Whether a decode that was started goes on by itself, so that others may run beside it."""

    @property
    def n_vocab(self) -> int:
        """Tokens that this model knows: ids 0 to n_vocab - 1."""

    @property
    def length(self) -> int:
        """Tokens that the sequence holds now."""

    def decode(self, tokens: Sequence[int], n_rows: int) -> Rows:
        """Append 1 to n_batch tokens; return the logits after each of the last n_rows.

        The rows are a view that the next decode overwrites. Raises DecodeError or Interrupted;
        `length` then says how many of the tokens were appended all the same.
        """

    def start(self, tokens: Sequence[int], n_rows: int) -> None:
        """Begin such a decode. `finish` has to come before anything else is asked."""

    def finish(self) -> Rows:
        """Wait for the decode that was started; return its rows."""

    def truncate(self, length: int) -> None:
        """Drop all tokens from position `length` on; 0 always works. Raises CannotRewind."""


class Drafter(Protocol):
    """A source of guesses that cost time: a model beside the target. It keeps its own state."""

    name: str
    muted: str  # why it cannot follow the text, "" where it can

    @property
    def n_ctx(self) -> int:
        """Most tokens of a text that it can follow."""

    @property
    def seconds(self) -> float:
        """Time spent so far in decodes."""

    def prefill(self, prompt: Sequence[int]) -> Iterator[int]:
        """Forget what does not belong to a prompt, then take it in, in steps.

        Yields how many tokens it has not read, first and after each step. The caller may leave off.
        """

    def n_behind(self, context: Sequence[int]) -> int | None:
        """Return how many tokens it has to decode for its next guess; None where it is silent."""

    def guess(
        self, context: Sequence[int], along: Sequence[int] = (), *, beside: bool = False
    ) -> Guess:
        """Guess what follows a context: the text as it was last observed, and guesses.

        along: what may follow. Where the guess turns out to be the first of these, and so on, the
        next ones may cost nothing. beside: the target is decoding meanwhile, which slows both.
        """

    def observe(self, history: Sequence[int], n_new: int) -> None:
        """Learn what became of the last guesses: only the last n_new tokens are new or changed."""

    def learn(self, guesses: Sequence[Guess], p: Sequence[float]) -> None:
        """Learn what the target thinks of guesses: p are its probabilities of the first ones."""


class Lookup(Protocol):
    """A source of guesses that cost next to nothing."""

    name: str

    def prefill(self, prompt: Sequence[int]) -> None:
        """Take in the prompt."""

    def guess(self, context: Sequence[int]) -> Guess | None:
        """Guess what follows a context: the text as it was last observed, and guesses."""

    def observe(self, history: Sequence[int], n_new: int) -> None:
        """Learn how the text went on: only the last n_new tokens are new or changed."""


class Sampler(Protocol):
    """Turns logits into the distribution that tokens are drawn from."""

    def begin(self, n_prompt: int) -> None:
        """Begin an answer, which follows the first n_prompt tokens of its histories."""

    def dist(self, row: Row, history: Sequence[int]) -> Dist:
        """Return the distribution of the token that follows the history."""

    def logits(self, row: Row, history: Sequence[int]) -> Row:
        """Return the logits that the distribution is made of: the row, or what penalties leave."""

    def warm(self, temperature: float) -> None:
        """Take another temperature from now on, neither of them 0; the filters stay."""


class Grammar(Protocol):
    """Says which tokens may follow in an answer."""

    def begin(self, n_prompt: int) -> None:
        """Begin an answer, which follows the first n_prompt tokens of its histories."""

    def allowed(self, tokens: NDArray[np.int32], history: Sequence[int]) -> NDArray[np.bool] | None:
        """Return which of the tokens may follow; None where the answer is none of the grammar."""


class Planner(Protocol):
    """Decides how many guesses to buy, and from whom."""

    def begin_answer(self) -> None:
        """Start an answer: another text, of which what was learned may tell less."""

    def reads(self, n_unread: int, n_left: int) -> bool:
        """Say whether the drafter is to read the n_unread tokens of the prompt that it has not.

        Asked when the target has read it: a yes is for all of them. Else asked before each round,
        where a yes is for a batch. n_left: tokens that it may still guess, at most.
        """

    def begin(self, n_max: int) -> None:
        """Start a round of at most n_max guesses, of which the answer's rest has no more."""

    def choose(self, found: Guess | None, n_behind: int | None) -> Choice:
        """Say where the next guess comes from, if it is worth its price.

        found: what the lookup offers. n_behind: tokens that the drafter has to decode for its next
        guess; None where there is no drafter, or it is silent.
        """

    def n_along(self) -> int:
        """Return how many tokens that the lookup expects the drafter reads with that guess."""

    def keeps(self, guess: Guess) -> bool:
        """Say whether the drafter's guess is worth verifying; the round's guesses end where not."""

    def n_worth(self, guesses: Sequence[Guess]) -> int:
        """Return how many of the guesses to verify, now that there are no more."""

    def goes_ahead(self, n_ahead: int, width: int, seconds: float) -> bool:
        """Say whether to draft on while the target decodes.

        n_ahead: guesses made so. width: tokens that the target decodes, since so many seconds.
        """

    def width(self, n_tokens: int) -> int:
        """Return how many tokens the target is to decode for n_tokens: so many, or some beside."""

    def observe(self, done: Round) -> None:
        """Learn from a finished round."""

    def costs(self) -> Costs | None:
        """Return what it believes that decodes cost; None where it does not care."""
