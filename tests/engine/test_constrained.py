"""Grammar and speculation together: the distribution, the guesses, and what is taken back."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from specli.engine.cache import Cache
from specli.engine.constrained import ConstrainedLookup, ConstrainedSampler
from specli.engine.decode import Decoder
from specli.engine.drafters import ModelDrafter, NgramDrafter
from specli.engine.fixed import FixedPlanner
from specli.engine.sampler import LogitSampler, of_draft
from specli.engine.types import Dist, Lookup, Round, Row
from specli.errors import DecodeError
from specli.settings import SamplingSettings
from tests.fakes import FakeModel, walk

N_VOCAB, END = 5, 4
PROMPT = [1, 2, 3, 1, 2]


@dataclass
class Alternating:
    """A grammar: after an even token an odd one, after an odd one an even one, never three 0s."""

    n_prompt: int = 0

    def begin(self, n_prompt: int) -> None:
        self.n_prompt = n_prompt

    def may(self, answer: Sequence[int]) -> bool:
        return all((a + b) % 2 for a, b in pairwise(answer)) and list(answer).count(0) < 3

    def allowed(self, tokens: NDArray[np.int32], history: Sequence[int]) -> NDArray[np.bool] | None:
        answer = list(history[self.n_prompt :])
        if not self.may(answer):
            return None
        return np.array([self.may([*answer, token]) for token in tokens.tolist()], np.bool)


@dataclass
class Only:
    """A grammar that allows some tokens, whatever came before."""

    tokens: NDArray[np.int32]
    n_asked: int = 0

    def begin(self, n_prompt: int) -> None: ...

    def allowed(self, tokens: NDArray[np.int32], history: Sequence[int]) -> NDArray[np.bool]:
        self.n_asked += len(tokens)
        return np.isin(tokens, self.tokens)


class Remembering(ConstrainedSampler):
    """The same; what follows a history is computed once, as it comes a thousand times in a test."""

    def __init__(self, settings: SamplingSettings, n_vocab: int, grammar: Alternating) -> None:
        super().__init__(settings, n_vocab, grammar)
        self._alternating = grammar
        self._known: dict[tuple[int, ...], Dist] = {}

    def dist(self, row: Row, history: Sequence[int]) -> Dist:
        key = self._alternating.n_prompt, *history, *row.view(np.int32).tolist()
        if key not in self._known:
            self._known[key] = super().dist(row, history)
            self._known[key].p.setflags(write=False)
        return self._known[key]


def dense(some: Dist, n: int) -> NDArray[np.float64]:
    p = np.zeros(n)
    p[some.ids] = some.p
    return p


SETTINGS = [
    SamplingSettings(),
    SamplingSettings(0.0),
    SamplingSettings(1.0, 0, 1.0, 0.0),
    SamplingSettings(0.7, 5, 1.0, 0.0),
    SamplingSettings(1.0, 0, 0.9, 0.0),
    SamplingSettings(1.3, 0, 1.0, 0.1),
    SamplingSettings(1.0, 30, 0.8, 0.02),
    SamplingSettings(1.0, 0, 0.99, 0.3),
    SamplingSettings(1.0, 1000, 0.5, 0.0, repeat_penalty=1.5),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("share", [0.001, 0.02, 0.5, 0.999])
def test_is_the_distribution_of_the_row_without_what_the_grammar_forbids(
    settings: SamplingSettings, share: float
) -> None:
    rng = np.random.default_rng(0)
    for spread in (0.5, 3.0, 9.0):
        row = rng.normal(0, spread, 3000).astype(np.float32)
        kept = rng.choice(3000, max(1, int(3000 * share)), replace=False).astype(np.int32)
        masked = np.full_like(row, -np.inf)
        masked[kept] = row[kept]
        for one in (settings, of_draft(settings)):
            got = ConstrainedSampler(one, 3000, Only(kept)).dist(row, [5, 6])
            wanted = LogitSampler(one, 3000).dist(masked, [5, 6])
            assert (np.diff(got.ids) > 0).all()
            np.testing.assert_allclose(dense(got, 3000), dense(wanted, 3000), atol=1e-5)


def test_asks_of_likely_tokens_only_where_these_suffice() -> None:
    row = np.random.default_rng(0).normal(0, 2, 50_000).astype(np.float32)
    grammar = Only(np.arange(0, 50_000, 2, dtype=np.int32))
    ConstrainedSampler(SamplingSettings(), 50_000, grammar).dist(row, [])
    assert grammar.n_asked < 3000


def test_a_grammar_that_allows_nothing_is_an_error() -> None:
    sampler = ConstrainedSampler(SamplingSettings(), 9, Only(np.empty(0, np.int32)))
    with pytest.raises(DecodeError, match="allows no token"):
        sampler.dist(np.zeros(9, np.float32), [])


def decoder(kind: str, settings: SamplingSettings, k: int, seed: int = 0) -> Decoder:
    grammar = Alternating()
    target = FakeModel(3, N_VOCAB, spread=1.0)
    sampler = Remembering(settings, N_VOCAB, grammar)
    drafter: ModelDrafter | None = None
    lookup: Lookup | None = None
    if kind == "draft":
        own = Remembering(of_draft(settings), N_VOCAB, grammar)
        draft = Cache(FakeModel(3, N_VOCAB, spread=1.0, noise=1.5))
        greedy = settings.temperature == 0
        rng = np.random.default_rng([seed, 1])
        drafter = ModelDrafter(draft, own, N_VOCAB, rng, greedy=greedy)
    elif kind == "free draft":  # it proposes what the grammar forbids, and goes on from there
        own_free = LogitSampler(of_draft(settings), N_VOCAB)
        draft = Cache(FakeModel(3, N_VOCAB, spread=1.0, noise=1.5))
        drafter = ModelDrafter(draft, own_free, N_VOCAB, np.random.default_rng([seed, 1]))
    elif kind == "ngram":
        lookup = ConstrainedLookup(NgramDrafter(), grammar)
    elif kind == "free ngram":
        lookup = NgramDrafter()
    rng = np.random.default_rng([seed, 0])
    planner = FixedPlanner(k)
    return Decoder(Cache(target), drafter, lookup, planner, sampler, frozenset({END}), rng)


KINDS = ["draft", "free draft", "ngram", "free ngram"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "settings", [SamplingSettings(1.0, 0, 1.0, 0.0), SamplingSettings(1.2, 2, 1.0, 0.0)], ids=str
)
def test_joint_distribution_of_three_tokens(kind: str, settings: SamplingSettings) -> None:
    target, sampler = FakeModel(3, N_VOCAB, spread=1.0), LogitSampler(settings, N_VOCAB)
    exact = np.zeros((N_VOCAB,) * 3)
    grammar = Alternating()
    for triple in walk(N_VOCAB):
        product = 1.0
        for i, token in enumerate(triple):
            if END in triple[:i]:
                product *= float(token == END)  # nothing follows the end: written as more ends
                continue
            row = target.row([*PROMPT, *triple[:i]]).copy()
            row[[not grammar.may([*triple[:i], other]) for other in range(N_VOCAB)]] = -np.inf
            product *= sampler.dist(row, []).prob(token) if np.isfinite(row).any() else 0.0
            if not product:
                break
        exact[triple] = product
    assert exact.sum() == pytest.approx(1.0)
    counts, made, n = np.zeros(exact.shape), decoder(kind, settings, 3), 1500
    for _ in range(n):
        for _ in made.generate(PROMPT, 3):
            pass
        counts[tuple([*made.history[len(PROMPT) :], END, END][:3])] += 1
    assert not counts[exact == 0].any(), "a token that the grammar forbids"
    common = exact * n >= 5
    observed = [*counts[common], counts[~common].sum()]
    expected = [*(exact[common] * n), exact[~common].sum() * n]
    if expected[-1] < 5:
        observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
    assert chisquare(observed, expected, sum_check=False).pvalue > 1e-4


@pytest.mark.parametrize("kind", ["draft", "ngram", "free ngram"])
def test_greedy_equals_plain(kind: str) -> None:
    settings = SamplingSettings(0.0)
    for k in (1, 3, 8):
        histories = []
        for one in ("none", kind):
            made = decoder(one, settings, k)
            for _ in made.generate(PROMPT, 60):
                pass
            histories.append(made.history)
        assert histories[0] == histories[1]


def test_what_the_grammar_forbids_is_not_even_judged() -> None:
    made = decoder("ngram", SamplingSettings(1.0), 6)
    rounds = [event for event in made.generate(PROMPT * 4, 40) if isinstance(event, Round)]
    answer = [token for done in rounds for token in done.tokens]
    assert Alternating().may(answer)
    said = 0
    for done in rounds:
        assert Alternating().may([*answer[:said], *(guess.token for guess in done.guesses)])
        said += len(done.tokens)
