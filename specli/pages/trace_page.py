"""The page of a trace: what its template shows, reckoned from the rounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from specli.engine.stats import Stats
from specli.pages.overview import Overview, overview
from specli.pages.render import percent, render, seconds
from specli.pages.visible import Part, decoded, readable, visible
from specli.trace import Trace, TracedAnswer, TracedGuess, TracedRound

_SYMBOLS = {"accepted": "✓", "rejected": "✗", "again": "=", "skipped": "○", "own": "◆"}
_REASONS = {
    "eog": "The model ended it.",
    "length": "It was cut at the most tokens that were wanted.",
    "stop": "A stop string ended it.",
    "context": "It was cut by the full context.",
    "interrupted": "It was interrupted.",
    "": "It broke off.",
}
_SOURCES = {"draft": "the draft", "ngram": "n-grams of the text"}


@dataclass(frozen=True, slots=True)
class Cell:
    """A token in a round. facts: about it, in words. q, p: shares that are drawn."""

    state: str
    symbol: str
    mark: str  # of its source, where there are several
    parts: list[Part]
    title: str
    facts: list[str]
    q: float | None = None
    p: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A round. starts_s: since the end of the prompt. n_before: tokens until then."""

    number: int
    starts_s: float
    round: TracedRound
    said: str
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the answer. state: accepted or own. number: of its round."""

    text: str
    state: str
    number: int


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer as it is shown. facts: names and values of the summary."""

    number: int
    prompt: str
    reason: str
    facts: list[tuple[str, str, str]]
    split: list[tuple[str, float, str]]
    text: list[Piece]
    overview: Overview
    rows: list[Row]
    longest_s: float
    total_s: float
    has_sources: bool


def trace_page(trace: Trace) -> str:
    """Return the page of a trace."""
    shown = [_shown(i, answer, trace) for i, answer in enumerate(trace.answers, 1)]
    is_greedy = trace.about.get("temperature") == "0"
    return render("trace.html", about=trace.about, answers=shown, is_greedy=is_greedy)


def _shown(number: int, answer: TracedAnswer, trace: Trace) -> Shown:
    pieces = trace.pieces
    starts = [0.0, *accumulate(one.seconds for one in answer.rounds)]
    several = len({guess.source for one in answer.rounds for guess in one.guesses}) > 1
    rows = [
        Row(i, start, one, _said(one), list(_cells(one, pieces, several)))
        for i, (one, start) in enumerate(zip(answer.rounds, starts, strict=False), 1)
    ]
    return Shown(
        number,
        readable(answer.prompt),
        _REASONS[answer.reason],
        list(_facts(answer.stats)),
        _split(answer.stats),
        list(_text(answer.rounds, trace)),
        overview(answer),
        rows,
        max(one.seconds for one in answer.rounds) or 1.0,
        starts[-1] or 1.0,
        several,
    )


def _facts(stats: Stats) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and a remark of what is said at the top."""
    rate = f"{stats.predicted_per_second:.1f}"
    yield "tokens per second", rate, f"{stats.predicted_n} tokens in {seconds(stats.predicted_s)}"
    if stats.gain:
        yield "times as fast", f"{stats.gain:.2f}", "as plain decoding is believed to be"
    if stats.draft_n:
        share = percent(stats.draft_n_accepted / stats.draft_n)
        yield "accepted", share, f"{stats.draft_n_accepted} of {stats.draft_n} guesses"
    else:
        yield "accepted", "-", stats.reason_off or "nothing was guessed"
    remark = f"{stats.draft_rounds} {'round' if stats.draft_rounds == 1 else 'rounds'}"
    if stats.plain_rounds:
        remark += f", {stats.plain_rounds} without a guess"
    yield "tokens per round", f"{stats.mean_tokens_per_round:.2f}", remark
    if stats.prompt_n or stats.cache_n:
        remark = f"{stats.prompt_n} tokens"
        if stats.cache_n:
            remark += f", {stats.cache_n} more were cached"
        yield "prompt", seconds(stats.prompt_s), remark


def _split(stats: Stats) -> list[tuple[str, float, str]]:
    """Return where the time went: name, share, time."""
    total = stats.predicted_s or 1.0
    parts = ("draft", stats.draft_s), ("target", stats.target_s), ("host", stats.host_s)
    return [(name, max(0.0, value) / total, seconds(value)) for name, value in parts]


def _said(one: TracedRound) -> str:
    """Return a round in words."""
    n = len(one.guesses)
    if not n:
        return "no guess"
    return f"{one.n_accepted} of {n} {'guess' if n == 1 else 'guesses'} accepted"


def _cells(one: TracedRound, pieces: Mapping[int, bytes], several: bool) -> Iterator[Cell]:
    """Yield what a round shows: its guesses and, behind those accepted, the target's own token."""
    n = len(one.guesses)
    for i, guess in enumerate(one.guesses):
        if i == one.n_accepted and guess.state != "again" and one.own is not None:
            yield _guess(guess, i, n, one, pieces, several)
            yield _own(one, pieces)
        else:
            yield _guess(guess, i, n, one, pieces, several)
    if one.own is not None and one.n_accepted == n:
        yield _own(one, pieces)


def _guess(
    guess: TracedGuess,
    i: int,
    n: int,
    one: TracedRound,
    pieces: Mapping[int, bytes],
    several: bool,
) -> Cell:
    source = _SOURCES.get(guess.source, guess.source)
    titles = {
        "accepted": "accepted",
        "rejected": "rejected",
        "again": "the target's own, as guessed",
        "skipped": "not judged" if guess.p is None else "behind a rejected guess",
    }
    if one.own is None and guess.state == "skipped":
        titles["skipped"] = "cut off by the stop string"
    facts = [f"guess {i + 1} of {n}, by {source}"]
    if guess.q is not None:
        facts.append(f"drawn with q = {percent(guess.q)}")
    facts.append(f"confidence {percent(guess.confidence)}")
    if guess.p is not None:
        facts.append(f"target p = {percent(guess.p)}")
    facts.append(f"token {guess.token}")
    return Cell(
        "own" if guess.state == "again" else guess.state,
        "◆" if guess.state == "again" else _SYMBOLS[guess.state],
        "n" if several and guess.source == "ngram" else "",
        visible(pieces[guess.token]),
        titles[guess.state],
        facts,
        guess.confidence if guess.q is None else guess.q,
        guess.p,
    )


def _own(one: TracedRound, pieces: Mapping[int, bytes]) -> Cell:
    own = one.own
    assert own is not None
    if not one.guesses:
        said = "nothing was guessed"
    elif one.n_accepted == len(one.guesses):
        said = "one more, as all guesses were accepted"
    else:
        said = f"said instead of guess {one.n_accepted + 1}"
    facts = [said, f"token {own}"]
    return Cell("own", _SYMBOLS["own"], "", visible(pieces[own]), "the target's own", facts)


def _text(rounds: Sequence[TracedRound], trace: Trace) -> Iterator[Piece]:
    """Yield the answer in stretches of the same round and state."""
    tokens = [
        (token, "accepted" if i < one.n_accepted else "own", number)
        for number, one in enumerate(rounds, 1)
        for i, token in enumerate(one.tokens)
    ]
    texts = decoded(
        b"" if token in trace.controls else trace.pieces[token] for token, _, _ in tokens
    )
    held: Piece | None = None
    for (_, state, number), text in zip(tokens, texts, strict=False):
        if held and (held.state, held.number) == (state, number):
            held = Piece(held.text + readable(text), state, number)
        else:
            if held:
                yield held
            held = Piece(readable(text), state, number)
    if held:
        yield held
    if rest := next(texts, ""):
        yield Piece(rest, "own", len(rounds))
