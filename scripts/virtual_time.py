"""Recorded answers once more, in virtual time: decodes take what curves say, nothing else counts.

The loop, the planner and the n-grams are the real ones. What a planner decides is worth a few
percent, which single runs on a machine with neighbours cannot tell; here the same answer always
takes the same time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log
from unittest.mock import patch

import numpy as np

from specli.bench.clairvoyant import Costs, least_seconds, ngram_lengths, runs_of_right
from specli.engine.acceptance import DRAWN_RATES, GREEDY_RATES, TRUE_RATES, Acceptance
from specli.engine.cache import Cache
from specli.engine.costs import N_MAX, CostCurve, ratios_of_rows
from specli.engine.decode import Decoder
from specli.engine.drafters import ModelDrafter, NgramDrafter
from specli.engine.fixed import FixedPlanner
from specli.engine.planner import AutoPlanner
from specli.engine.sampler import LogitSampler, of_draft
from specli.engine.types import Round, Rows
from specli.settings import SamplingSettings

GREEDY = SamplingSettings(0.0, top_k=0, top_p=1.0, min_p=0.0)


@dataclass(frozen=True, slots=True)
class Trace:
    """A target's answer, and what a draft guesses at each of its tokens.

    prompt, answer: tokens. guesses: the draft's token, (len(answer),): the likeliest at temperature
    0, else the answer's with the probability that a guess would have become it, min(1, q / p), and
    -1 otherwise. confidences: the draft's largest probability. Block verification, which accepts
    a little more, is not looked at.
    """

    prompt_id: str
    category: str
    temperature: float
    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    guesses: tuple[int, ...]
    confidences: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """Seconds of decodes by tokens: of a target that returns a row of logits for each of them.

    draft_s: of a draft that returns one row; draft_rows_s: of one that returns one for each token.
    """

    name: str
    target_s: Mapping[int, float]
    draft_s: Mapping[int, float]
    draft_rows_s: Mapping[int, float]


class Clock:
    """Virtual time: it goes on only where a decode takes some."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class ReplayedModel:
    """A Model of which only the place in the text decides what it expects next."""

    n_ctx = n_batch = 1 << 20
    n_ctx_train = 0
    n_rows = N_MAX
    prepares = goes_on = False

    def __init__(
        self, n_prompt: int, expected: Rows, one_row: CostCurve, rows: CostCurve, clock: Clock
    ) -> None:
        """expected: rows of logits, one for each token of the answer. one_row, rows: its costs."""
        self._n_prompt = n_prompt
        self._expected = expected
        self._one_row, self._rows = one_row, rows
        self._clock = clock
        self._started: Rows | None = None
        self.n_vocab = expected.shape[1]
        self.length = 0

    def decode(self, tokens: Sequence[int], n_rows: int) -> Rows:
        self._clock.now += (self._rows if n_rows > 1 else self._one_row).at(len(tokens))
        self.length += len(tokens)
        at = np.arange(self.length - n_rows, self.length) - self._n_prompt + 1
        return self._expected[np.clip(at, 0, len(self._expected) - 1)]

    def start(self, tokens: Sequence[int], n_rows: int) -> None:
        self._started = self.decode(tokens, n_rows)

    def finish(self) -> Rows:
        assert self._started is not None
        return self._started

    def truncate(self, length: int) -> None:
        self.length = min(self.length, length)


def seconds_of(
    trace: Trace, curves: Curves, k: int | None, believed: Curves | None = None
) -> float:
    """Return how long the answer takes with k guesses in a round, None for as many as pay.

    believed: what the planner takes the costs for when it begins, where that is wrong.
    """
    if k is not None:
        return _seconds(trace, curves, FixedPlanner(k))
    return _seconds(trace, curves, _auto(trace.temperature, believed or curves))


def seconds_in_session(traces: Sequence[Trace], curves: Curves) -> list[float]:
    """Return how long each answer takes with auto where one session gives them all, in order."""
    auto = _auto(traces[0].temperature, curves)
    return [_seconds(trace, curves, auto) for trace in traces]


@dataclass(frozen=True, slots=True)
class _Auto:
    """What outlasts an answer: a planner, and the costs that it believes, which caches learn."""

    target: CostCurve
    draft: CostCurve
    ratios: CostCurve
    planner: AutoPlanner


def _auto(temperature: float, believed: Curves) -> _Auto:
    target, draft = CostCurve(believed.target_s), CostCurve(believed.draft_s)
    ratios = ratios_of_rows(draft)
    rates = DRAWN_RATES if temperature else GREEDY_RATES
    acceptance = {"draft": Acceptance(rates), "ngram": Acceptance(TRUE_RATES, lasts=False)}
    return _Auto(target, draft, ratios, AutoPlanner(target, draft, acceptance, ratios))


def _seconds(trace: Trace, curves: Curves, how: _Auto | FixedPlanner) -> float:
    clock = Clock()
    prompt, answer, guesses = _renumbered(trace)
    decoder = _decoder(len(prompt), answer, guesses, trace.confidences, curves, how, clock)
    with patch("time.perf_counter", clock):
        rounds = [e for e in decoder.generate(prompt, len(answer)) if isinstance(e, Round)]
    assert decoder.history[len(prompt) :] == answer
    return sum(done.draft_s + done.target_s for done in rounds)


def least(trace: Trace, curves: Curves) -> float:
    """Return the least time for the answer: the clairvoyant bound."""
    right = [guess == token for guess, token in zip(trace.guesses, trace.answer, strict=True)]
    costs = Costs(curves.target_s, curves.draft_s[1])
    return least_seconds(costs, runs_of_right(right), ngram_lengths(trace.prompt, trace.answer))


def _renumbered(trace: Trace) -> tuple[list[int], list[int], list[int]]:
    """Return prompt, answer and guesses with tokens from 0 on: a vocabulary of those alone."""
    texts = trace.prompt, trace.answer, trace.guesses
    ids = {token: i for i, token in enumerate(dict.fromkeys(t for text in texts for t in text))}
    prompt, answer, guesses = ([ids[token] for token in text] for text in texts)
    return prompt, answer, guesses


def _decoder(
    n_prompt: int,
    answer: Sequence[int],
    guesses: Sequence[int],
    confidences: Sequence[float],
    curves: Curves,
    how: _Auto | FixedPlanner,
    clock: Clock,
) -> Decoder:
    """Put together what assemble puts together of real models."""
    n_vocab = max(_LEAST_VOCAB, 1 + max(*answer, *guesses))
    target_s = CostCurve(curves.target_s)
    draft_s, rows_s = CostCurve(curves.draft_s), CostCurve(curves.draft_rows_s)
    sure = _rows(answer, [1.0] * len(answer), n_vocab)
    likely = _rows(guesses, confidences, n_vocab)
    target = Cache(ReplayedModel(n_prompt, sure, target_s, target_s, clock))
    draft = Cache(ReplayedModel(n_prompt, likely, draft_s, rows_s, clock))
    rng = np.random.default_rng(0)
    drafter = ModelDrafter(
        draft, LogitSampler(of_draft(GREEDY), n_vocab), n_vocab, rng, greedy=True
    )
    sampler = LogitSampler(GREEDY, n_vocab)
    if isinstance(how, FixedPlanner):
        return Decoder(target, drafter, None, how, sampler, (), rng)
    target.costs, draft.costs, draft.ratios_of_rows = how.target, how.draft, how.ratios
    return Decoder(target, drafter, NgramDrafter(), how.planner, sampler, (), rng)


def _rows(tokens: Sequence[int], confidences: Sequence[float], n_vocab: int) -> Rows:
    """Return logits, (len(tokens), n_vocab), whose softmax has each token with its confidence."""
    rows = np.full((len(tokens), n_vocab), -np.inf, np.float32)
    for row, token, confidence in zip(rows, tokens, confidences, strict=True):
        rest = 1.0 - confidence
        n_others = ceil(rest / confidence)  # so many that none is likelier
        if n_others:
            others = [i for i in range(n_others + 1) if i != token][:n_others]
            row[others] = log(rest / n_others)
        row[token] = log(confidence)
    return rows


_LEAST_VOCAB = 256  # for as many other tokens as the least sure guess may have beside it
