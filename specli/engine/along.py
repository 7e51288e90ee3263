"""How much of a text that may follow a draft reads with its next guess."""

import numpy as np

from specli.engine.acceptance import TRUE_RATES, Acceptance
from specli.engine.costs import N_MAX, CostCurve
from specli.engine.types import Guess

# Most rows of logits that one decode of a draft returns: for its guess, for what it reads along.
DRAFT_ROWS = 24
_MARGIN = 1.2  # what it costs times this has to be saved: what is believed is off by some percent


class Along:
    """Settles how much a draft reads along, by how often it agreed with what was found of late."""

    def __init__(self, draft: CostCurve, ratios: CostCurve) -> None:
        """Take the costs that `read_along` takes."""
        self._draft = draft
        self._ratios = ratios
        self._agreement = Acceptance(TRUE_RATES, lasts=False)
        self.begin(None)

    def begin_answer(self) -> None:
        """Begin a text."""
        self._agreement.begin()

    def begin(self, found: Guess | None) -> None:
        """Begin a guess. found: what the text itself suggests."""
        self._found = found
        self.n = 0  # tokens to read along

    def settle(self, n_behind: int, n_most: int, acceptance: float) -> float:
        """Settle n; return the seconds that are saved by it.

        acceptance: the probability that a guess is accepted. Where it is low, what was read along
        is not guessed: a draft may agree with what is wrong.
        """
        if self._found is None:
            return 0.0
        likely = self._agreement.probability(self._found.confidence) * acceptance
        self.n, saved_s = read_along(self._draft, self._ratios, likely, n_behind, n_most)
        return saved_s

    def observe(self, guess: Guess) -> None:
        """Learn what the draft has guessed."""
        if self._found:
            self._agreement.observe(self._found.confidence, guess.token == self._found.token)


def read_along(
    draft: CostCurve, ratios: CostCurve, likely: float, n_behind: int, n_most: int
) -> tuple[int, float]:
    """Return how many tokens to read along, at most n_most, and the seconds that are saved by it.

    A draft decodes many tokens in much less time than one by one. Each that it would have guessed
    itself saves it a decode; from the first other one on they were read in vain. draft: what its
    decodes cost that return one row of logits; ratios: how many times as much those cost that
    return one for each token. likely: the probability that it goes on, with what is expected.
    n_behind: tokens that it decodes anyway.
    """
    n = np.arange(1, min(n_most, DRAFT_ROWS - 1, N_MAX - n_behind) + 1)
    if not len(n):
        return 0, 0.0
    extra = (draft.seconds() * ratios.seconds())[n_behind + n] - draft.at(n_behind)
    saved = np.cumsum(likely**n) * draft.at(1) - _MARGIN * extra
    best = int(saved.argmax())
    return (best + 1, float(saved[best])) if saved[best] > 0.0 else (0, 0.0)
