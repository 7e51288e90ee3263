"""The same number of guesses in every round."""

from collections.abc import Sequence

from specli.engine.types import Choice, Costs, Guess, Round


class FixedPlanner:
    """Buy k guesses in every round, whatever they cost: of the draft, else of the lookup."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._n = 0

    def begin_answer(self) -> None:
        """Start an answer."""

    def reads(self, n_unread: int, n_left: int) -> bool:
        """Let the draft read everything."""
        return True

    def begin(self, n_max: int) -> None:
        """Start a round."""
        self._n = 0

    def choose(self, found: Guess | None, n_behind: int | None) -> Choice:
        """Want k guesses."""
        if self._n >= self._k:
            return "stop"
        self._n += 1
        if n_behind is not None:
            return "draft"
        return "stop" if found is None else "found"

    def n_along(self) -> int:
        """Let the draft guess by itself."""
        return 0

    def keeps(self, guess: Guess) -> bool:
        """Keep all."""
        return True

    def n_worth(self, guesses: Sequence[Guess]) -> int:
        """Keep all."""
        return len(guesses)

    def goes_ahead(self, n_ahead: int, width: int, seconds: float) -> bool:
        """Guess one token ahead, whatever time it takes: a seed gives the same text again."""
        return n_ahead < 1

    def width(self, n_tokens: int) -> int:
        """Decode what is there."""
        return n_tokens

    def observe(self, done: Round) -> None:
        """Learn nothing."""

    def costs(self) -> Costs | None:
        """Care for none."""
        return None
