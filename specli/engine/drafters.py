"""Where guesses come from: a draft model, or the text itself."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import takewhile

import numpy as np

from specli.engine.cache import Cache, common_prefix
from specli.engine.tempering import Tempering
from specli.engine.types import Guess, Rows, Sampler
from specli.errors import CannotRewind


class ModelDrafter:
    """Let a smaller model with the same vocabulary run ahead of the target.

    Its guesses are draws from its own distribution q under `sampler`; any q is exact. Confidence is
    the largest probability of q. It is silent where it cannot follow: past its own context, or
    after a token that it does not know. What the text itself suggests it reads along, many tokens
    in one decode: as long as its own draws are those, the next ones cost nothing (cascade
    speculative drafting, Chen et al. 2023, arXiv 2312.11462; docs/adr/0022).
    """

    name = "draft"

    def __init__(
        self,
        cache: Cache,
        sampler: Sampler,
        n_vocab: int,
        rng: np.random.Generator,
        *,
        temperature: float = 0.0,
        greedy: bool = False,
    ) -> None:
        """n_vocab: how many tokens the target knows; the draft proposes no other.

        temperature: the target's, beside which that of `sampler` moves to what overlaps most; 0 for
        a sampler that stays as it is. greedy: propose what is likeliest instead of a draw.
        """
        self.cache = cache
        self._sampler = sampler
        self._n_vocab = n_vocab
        self._rng = rng
        self._greedy = greedy
        self._temperature = temperature
        self._rows: Rows | None = None  # logits after each of the last tokens that it holds
        self.temper(Tempering())
        self.muted = ""

    @property
    def n_ctx(self) -> int:
        """Most tokens of a text that it can follow."""
        return self.cache.model.n_ctx

    @property
    def reads_along(self) -> bool:
        """Whether that may pay: not on a GPU, where other numbers of tokens have to be prepared."""
        return not (self.cache.model.prepares or self.cache.model.goes_on)

    @property
    def seconds(self) -> float:
        """Time spent in decodes of the draft model."""
        return self.cache.seconds

    def prefill(self, prompt: Sequence[int]) -> Iterator[int]:
        """Decode all but the last token of the prompt; where it cannot follow, only forget.

        Yields how many of them are left, first and after each batch.
        """
        self._rows = None
        if self._can_follow(prompt, 0):
            for n_held in self.cache.sync(prompt[:-1]):
                yield len(prompt) - 1 - n_held
        else:
            self._rewind(common_prefix(self.cache.tokens, prompt[:-1]))

    def n_behind(self, context: Sequence[int]) -> int | None:
        """Return how many tokens it has to decode for its next guess; None where it is silent."""
        n_held = min(len(self.cache.tokens), len(context))
        return len(context) - n_held if self._can_follow(context, n_held) else None

    def guess(
        self, context: Sequence[int], along: Sequence[int] = (), *, beside: bool = False
    ) -> Guess:
        """Draw the token after a context that begins with the tokens in the cache, or they with it.

        along: what may follow, to be read in the same decode, as far as there is room for it.
        """
        n_after = len(self.cache.tokens) - len(context)
        if self._rows is None or n_after < 0:
            self._rows = self._read(context, along, beside)
            n_after = len(self.cache.tokens) - len(context)
        q = self._sampler.dist(self._rows[-1 - n_after, : self._n_vocab], context)
        best = int(q.weights.argmax())
        token = int(q.ids[best]) if self._greedy else q.draw(self._rng)
        if n_after and self.cache.tokens[len(context)] != token:
            self._rewind(len(context))
        certain = self._greedy or len(q.ids) == 1
        return Guess(token, None if certain else q, float(q.weights[best]) / q.total, self.name)

    def observe(self, history: Sequence[int], n_new: int) -> None:
        """Drop what the target rejected, at once: the shared prefix stays."""
        held = self.cache.tokens
        kept = min(len(history) - n_new, len(held))
        most = min(len(history) - 1, len(held))
        while kept < most and held[kept] == history[kept]:
            kept += 1
        self._rewind(kept)

    def learn(self, guesses: Sequence[Guess], p: Sequence[float]) -> None:
        """Learn from the first guess which temperature suits the target; one a round is enough."""
        if self._temperature and p and (q := guesses[0].q):
            self._tempering.observe(q, guesses[0].token, p[0])
            self.temper(self._tempering)

    def temper(self, tempering: Tempering) -> None:
        """Draw at the temperature that this one chooses, from now on."""
        self._tempering = tempering
        if self._temperature:
            self._sampler.warm(self._temperature * tempering.factor)

    def _read(self, context: Sequence[int], along: Sequence[int], beside: bool) -> Rows:
        """Decode what it lacks of a context, and what it knows and has room for of what may follow.

        Returns the logits after the context and after each token more, (1 + n_along, n_vocab).
        """
        self._rewind(min(len(self.cache.tokens), len(context) - 1))
        n_held, model = len(self.cache.tokens), self.cache.model
        while len(context) - n_held > model.n_batch:
            self.cache.fill(context[n_held : n_held + model.n_batch], 0)
            n_held += model.n_batch
        step = context[n_held:]
        room = min(model.n_rows - 1, model.n_batch - len(step), model.n_ctx - len(context))
        known = list(takewhile(lambda token: token < model.n_vocab, along[: max(0, room)]))
        return self.cache.fill([*step, *known], 1 + len(known), beside=beside)

    def _rewind(self, length: int) -> None:
        self._rows = None
        try:
            self.cache.rewind(length)
        except CannotRewind:  # it fell silent long ago, and its window has moved on
            self.cache.rewind(0)

    def _can_follow(self, context: Sequence[int], n_held: int) -> bool:
        model = self.cache.model
        self.muted = ""
        if len(context) > model.n_ctx:
            self.muted = f"the draft's context of {model.n_ctx} tokens is full"
        elif max(context[n_held:], default=0) >= model.n_vocab:
            self.muted = "the draft does not know a token of this text"
        return not self.muted


NGRAM_SIZES = 8, 5, 3, 2, 1


class NgramDrafter:
    """Guess that what followed the last few tokens before will follow them again.

    Prompt lookup decoding, with counts: of the longest n-gram that ends the context and occurred
    before, the most frequent follower, of equally frequent ones the latest; but where a text is
    copied that resembles itself, the follower of by far the longest match. Costs a few dictionary
    look-ups a token, however long the text is.
    """

    name = "ngram"

    def __init__(self, sizes: Sequence[int] = NGRAM_SIZES) -> None:
        """sizes: the n of the n-grams, the longest first."""
        self._sizes = sizes
        self._text: list[int] = []
        self._n_prompt = 0  # tokens of it that the answer follows
        # n-gram -> follower -> how often, and the position of its last occurrence
        self._followers: dict[tuple[int, ...], dict[int, tuple[int, int]]] = {}

    def prefill(self, prompt: Sequence[int]) -> None:
        """Index the prompt, anew where it is not the text so far with more behind it."""
        if self._text != prompt[: len(self._text)]:
            self._text = []
            self._followers = {}
        self.observe(prompt, len(prompt) - len(self._text))
        self._n_prompt = len(prompt)

    def guess(self, context: Sequence[int]) -> Guess | None:
        """Return the likeliest continuation of the text, the guesses so far being part of it."""
        for n in self._sizes:
            followers = self._followers.get(tuple(context[-n:]))
            if followers and len(context) >= n:
                return self._likeliest(context, n, followers)
        return None

    def observe(self, history: Sequence[int], n_new: int) -> None:
        """Index what is new: each n-gram has the token after it to offer."""
        for at in range(len(self._text), len(history)):
            for n in self._sizes:
                if at >= n:
                    followers = self._followers.setdefault(tuple(history[at - n : at]), {})
                    count, _ = followers.get(history[at], (0, 0))
                    followers[history[at]] = count + 1, at
        self._text.extend(history[len(self._text) :])

    def _likeliest(
        self, context: Sequence[int], n: int, followers: Mapping[int, tuple[int, int]]
    ) -> Guess:
        """Return the most frequent follower, but of those whose match is not far from the longest.

        Only where n is the largest may a match have such a lead.
        """
        n_rivals = _N_RIVALS if n == self._sizes[0] else 1
        likely = nlargest(n_rivals, followers.items(), key=_frequency)
        lengths = {token: n + self._n_more(context, at, n) for token, (_, at) in likely}
        least = max(lengths.values()) - _LEAD
        token, (count, at) = next(rival for rival in likely if lengths[rival[0]] > least)
        n_beaten = sum(count for rival, (count, _) in likely if lengths[rival] <= least)
        n_seen = sum(count for count, _ in followers.values()) - n_beaten
        rates = _COPIED if at < self._n_prompt else _REPEATED
        confidence = _confidence(rates, lengths[token], count / n_seen)
        return Guess(token, None, confidence, self.name)

    def _n_more(self, context: Sequence[int], at: int, n: int) -> int:
        """Return how many tokens before an n-gram match as well, as far as it matters."""
        most = min(_LONGEST - n, at - n)
        for i in range(most):
            if self._text[at - n - 1 - i] != context[len(context) - n - 1 - i]:
                return i
        return max(most, 0)


_LONGEST = 32
# Followers whose match is so many tokens shorter than the longest do not count: in edited files the
# one of the longest match was right in 6 of 6 cases, the most frequent one in none.
_LEAD = 16
_N_RIVALS = 8  # followers that are looked at
# Acceptance by the length of the match, where it was always followed by the same token: what is
# copied from the prompt goes on for long, what repeats the answer's own form soon has other values.
# It is the bins of Acceptance that count: 0.85, 0.93 and 0.975 are what one begins with.
_COPIED = (32, 0.97), (12, 0.92), (8, 0.89), (4, 0.7), (2, 0.5), (1, 0.25)
_REPEATED = (32, 0.9), (8, 0.85), (4, 0.7), (2, 0.5), (1, 0.25)


def _frequency(follower: tuple[int, tuple[int, int]]) -> tuple[int, int]:
    return follower[1]


def _confidence(rates: Sequence[tuple[int, float]], length: int, share: float) -> float:
    """Return roughly how often such a guess was right in edited, extracted and new text.

    share: how often the n-gram went on like this.
    """
    alone = next(rate for least, rate in rates if length >= least)
    return alone * share**2
