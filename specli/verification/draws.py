"""Short answers drawn plainly and speculatively, and what the target says of them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from specli.engine.decode import Decoder
from specli.engine.types import Dist, Guess, Row, certain
from specli.verification.plain import Target, rounds_of
from specli.verification.statistics import Score, draft_score, sureness_score
from specli.verification.two_sample import Answer

N_TOKENS = 5  # of an answer: a round of as many guesses as `K`, or several with fewer
K = 4  # guesses in a round where the user names no number: `auto` might make none
_N_LOOKED_AT = 32  # places that answers might be drawn at
_LEAST_LIFT = 1e-4  # logits; what rounding does at least


@dataclass(frozen=True, slots=True)
class Place:
    """A text that answers continue. id: of the prompt that it begins with."""

    id: str
    tokens: tuple[int, ...]


@dataclass(slots=True)
class Draws:
    """All answers at one place so far.

    guessed: what the draft wanted each speculative answer to begin with. draft_scores: of the
    tokens that were guessed, sureness_scores: of all speculative ones. impossible: answers up to a
    token that the sampler rules out. seen: how often each beginning of an answer came; expected:
    how likely its last token was, given those before.
    """

    place: Place
    plain: list[Answer] = field(default_factory=list)
    speculative: list[Answer] = field(default_factory=list)
    guessed: list[Answer] = field(default_factory=list)
    draft_scores: list[Score] = field(default_factory=list)
    sureness_scores: list[Score] = field(default_factory=list)
    impossible: list[Answer] = field(default_factory=list)
    seen: Counter[Answer] = field(default_factory=Counter)
    expected: dict[Answer, float] = field(default_factory=dict)
    n_drafted: int = 0
    n_accepted: int = 0


def draw(
    draws: Draws,
    decoder: Decoder,
    target: Target,
    n: int,
    rng: np.random.Generator,
    *,
    noise: float,
    on_answer: Callable[[], None] = lambda: None,
) -> None:
    """Add n answers of each kind. noise: what several rows at once do to a logit.

    Each kind begins with an empty cache: a fault that spoils the text before is then one of one
    kind only. Raises Interrupted, and what is complete by then is added.
    """
    prompt = draws.place.tokens
    target.forget()
    for _ in range(n):
        answer = tuple(token for token, _ in target.decode(prompt, N_TOKENS, rng))
        draws.plain.append(answer)
        on_answer()
    target.forget()
    drawn = []
    try:
        for _ in range(n):
            drawn.append(_speculative(draws, decoder))
            on_answer()
    finally:
        draws.speculative += [answer for answer, _ in drawn]
    target.forget()
    for answer, guesses in drawn:
        _judge(draws, target, answer, guesses, noise)
        on_answer()


def _speculative(draws: Draws, decoder: Decoder) -> tuple[Answer, list[Guess | None]]:
    """Draw one answer; return it with the guess that was made for each token, if one was."""
    rounds = rounds_of(decoder, draws.place.tokens, N_TOKENS)
    answer: list[int] = []
    guesses: list[Guess | None] = []
    for done in rounds:
        answer += done.tokens
        padded = [*done.guesses, *[None] * len(done.tokens)]
        guesses += padded[: len(done.tokens)]
        draws.n_drafted += done.n_drafted
        draws.n_accepted += done.n_accepted
    draws.guessed.append(tuple(guess.token for guess in rounds[0].guesses))
    return tuple(answer), guesses


def _judge(
    draws: Draws, target: Target, answer: Answer, guesses: Sequence[Guess | None], noise: float
) -> None:
    """Hold an answer against the target's own distributions, each given the tokens before.

    Whether a token was guessed depends on what came before it, never on the token itself, so its
    distribution is the target's in either case.
    """
    prompt = draws.place.tokens
    rows = target.read(prompt, answer, target.cache.model.n_rows)
    draws.seen[()] += 1
    for i, (token, guess, row) in enumerate(zip(answer, guesses, rows, strict=True)):
        history = [*prompt, *answer[:i]]
        p = target.sampler.dist(row, history)
        if p.prob(token) == 0.0 and not _at_the_edge(target, row, history, token, noise):
            draws.impossible.append(answer[: i + 1])
        if guess:
            draws.draft_scores.append(draft_score(p, guess.q or certain(guess.token), token))
        draws.sureness_scores.append(sureness_score(p, token))
        draws.seen[answer[: i + 1]] += 1
        draws.expected[answer[: i + 1]] = p.prob(token)


def _at_the_edge(
    target: Target, row: Row, history: Sequence[int], token: int, noise: float
) -> bool:
    """Say whether rounding alone may have kept a token out: filters cut somewhere."""
    lift = max(2 * noise, _LEAST_LIFT)
    lowered = np.where(row > row[token], row - np.float32(lift), row)
    lowered[token] = row[token] + np.float32(_LEAST_LIFT)
    return target.sampler.dist(lowered, history).prob(token) > 0.0


def find_places(
    decoder: Decoder, target: Target, texts: Sequence[tuple[str, Answer, Answer]], n: int
) -> list[Place]:
    """Return n places in texts, or all, at which a fault would be seen best.

    texts: id, prompt, and an answer to it. At the best place target and draft agree half. At most
    one place of each text, as long as there are texts. Raises Interrupted.
    """
    stride = max(1, sum(len(answer) for _, _, answer in texts) // _N_LOOKED_AT)
    ranked: list[list[tuple[float, Place]]] = []
    for prompt_id, prompt, answer in texts:
        target.forget()
        rows = target.read(prompt, answer, target.cache.model.n_rows)
        dists = [
            target.sampler.dist(row, [*prompt, *answer[:i]]) if i % stride == 0 else None
            for i, row in enumerate(rows)
        ]
        found = [
            (
                _sensitivity(decoder, (*prompt, *answer[:i]), p),
                Place(prompt_id, (*prompt, *answer[:i])),
            )
            for i, p in enumerate(dists)
            if p
        ]
        ranked.append(sorted(found, key=lambda pair: -pair[0]))
    best = [
        (rank, -worth, i, place)
        for i, places in enumerate(ranked)
        for rank, (worth, place) in enumerate(places)
    ]
    return [place for *_, place in sorted(best, key=lambda entry: entry[:3])[:n]]


def _sensitivity(decoder: Decoder, context: Answer, p: Dist) -> float:
    """Return how much a token there says of the draft: 0 where it guesses nothing."""
    guesses = rounds_of(decoder, context, 2)[0].guesses
    if not guesses:
        return 0.0
    guess = guesses[0]
    return draft_score(p, guess.q or certain(guess.token), guess.token).variance
