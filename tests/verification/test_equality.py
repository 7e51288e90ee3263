"""Greedy answers compared: what is equal, what rounding explains, what nothing does."""

from collections.abc import Sequence

import numpy as np
import pytest

from specli.engine import decode
from specli.engine.decode import Decoder
from specli.engine.types import Rows
from specli.verification.equality import Comparison, Divergence, compare
from specli.verification.plain import target_of
from tests.fakes import FakeModel, FakeSampler, make_decoder
from tests.faults import Faulty

GREEDY = FakeSampler(temperature=0.0)
PROMPT = [1, 2, 3, 1, 2]


class Rounding(FakeModel):
    """Its logits depend a little on how many rows are decoded at once, as on real machines."""

    size = 0.3

    def decode(self, tokens: Sequence[int], n_rows: int) -> Rows:
        rows = super().decode(tokens, n_rows)
        if n_rows > 1:
            noise = np.random.default_rng(self.length).uniform(-1, 1, rows.shape)
            rows = rows + self.size * noise.astype(np.float32)
        return rows


def compared(decoder: Decoder, n: int = 60) -> Comparison:
    return compare("a", decoder, target_of(decoder), PROMPT, n)


@pytest.mark.parametrize("draft", ["ngram", FakeModel(3, 9, noise=0.8)])
def test_the_right_verifier_is_equal(draft: FakeModel | str) -> None:
    done = compared(make_decoder(FakeModel(3, 9), draft, 3, GREEDY))
    assert done.divergences == ()
    assert done.noise < 1e-6
    assert done.n_compared == len(done.answer) == 60
    assert done.n_drafted > done.n_accepted > 0


def test_a_verifier_that_accepts_everything_is_found_where_it_errs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decode, "verify", Faulty("accepts everything"))
    model = FakeModel(3, 9)
    done = compared(make_decoder(model, FakeModel(3, 9, noise=0.8), 3, GREEDY))
    failure = done.failure
    assert failure
    row = model.row([*PROMPT, *done.answer[: failure.at]])
    assert failure.plain == row.argmax()
    assert failure.best_margin == pytest.approx(float(row.max() - np.sort(row)[-2]))
    assert failure.margin in (None, pytest.approx(float(row.max() - row[failure.speculative])))
    assert failure.speculative != failure.plain
    assert done.n_compared == failure.at + 1


def test_ties_that_rounding_decides_are_explained_and_the_rest_is_compared() -> None:
    n_ties = 0
    for seed in range(12):
        done = compared(make_decoder(Rounding(seed, 9), FakeModel(seed, 9), 3, GREEDY))
        assert done.failure is None
        assert done.n_compared == 60
        assert 0.01 < done.noise <= 2 * Rounding.size
        n_ties += len(done.divergences)
        assert n_ties > 1


@pytest.mark.parametrize(
    ("margin", "explained"), [(0.0, True), (0.1, True), (0.11, False), (None, False)]
)
def test_a_tie_is_narrow(margin: float | None, explained: bool) -> None:
    assert Divergence(0, 1, 2, margin, 0.0, 0.1).explained == explained


def test_an_answer_that_ends_early_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = make_decoder(FakeModel(3, 9), "ngram", 3, GREEDY)
    target = target_of(decoder)
    plain = compared(decoder).answer
    decoder.eog = {plain[7]}  # the loop knows another end than plain decoding
    failure = compare("a", decoder, target, PROMPT, 60).failure
    assert failure
    assert (failure.at, failure.speculative) == (plain.index(plain[7]) + 1, None)


def test_the_end_of_generation_ends_both() -> None:
    decoder = make_decoder(FakeModel(3, 9), FakeModel(3, 9, noise=0.8), 3, GREEDY)
    plain = compared(decoder).answer
    decoder.eog = {plain[20]}
    done = compared(decoder)
    assert done.answer == plain[: plain.index(plain[20]) + 1]
    assert done.divergences == ()
