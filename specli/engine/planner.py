"""How many guesses to buy in a round."""

from dataclasses import dataclass

from specli.engine.types import Round


@dataclass(frozen=True, slots=True)
class FixedPlanner:
    """Buy k guesses in every round, whatever they cost."""

    k: int

    def wants(self, n_drafted: int, confidence: float) -> bool:
        """Want k guesses."""
        return n_drafted < self.k

    def observe(self, done: Round) -> None:
        """Learn nothing."""
