"""The page of a trace: true to the trace, harmless whatever a model says."""

import random
import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser

from specli.engine.stats import Stats
from specli.engine.types import Costs, Guess, Round
from specli.pages.render import percent, seconds
from specli.pages.trace_page import trace_page
from specli.trace import Trace, Tracer

HOSTILE = (
    *(
        "<script>alert(1)</script>",
        "</td></table>",
        "\"'><img src=x onerror=alert(1)>",
        "{{ 7 * 7 }}",
    ),
    *("]]>-->", "\u202eabc", "\x1b[31m", " the", "\n\n", "שלום", "\u0301", "&amp;"),
)
PIECES = (*(text.encode() for text in HOSTILE), b"\xe2\x82", b"\xac", b"\xff")


class Pieces:
    def tokenize(self, text: str) -> list[int]:
        raise NotImplementedError

    def piece(self, token: int) -> bytes:
        return PIECES[token]

    def text(self, token: int) -> bytes:
        return b""


def make_trace(n_rounds: int = 40, seed: int = 1) -> Trace:
    """Return a trace with everything in it."""
    rng = random.Random(seed)
    tracer = Tracer(Pieces(), {"target": "<i>t", "draft": "d", "temperature": "0"}, Stats("both"))
    tracer.begin("<script>alert(2)</script>")
    for _ in range(n_rounds):
        guesses = tuple(
            Guess(rng.randrange(len(PIECES)), None, rng.random(), rng.choice(["draft", "ngram"]))
            for _ in range(rng.choice([0, 1, 4]))
        )
        n = rng.randint(0, len(guesses))
        tokens = (*(guess.token for guess in guesses[:n]), rng.randrange(len(PIECES)))
        p = tuple(rng.random() for _ in guesses[: n + 1])
        tracer.add(Round(tokens, guesses, n, 0.01, 0.03, 0.001, p))
    trace = tracer.trace()
    trace.answers[0].stats.costs = Costs({1: 0.03}, 0.01)
    return trace


class Reader(HTMLParser):
    """Counts the elements of a page, and the tokens by their state."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.states: Counter[str] = Counter()
        self.handlers: list[str] = []
        self.sources: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        names = (dict(attrs).get("class") or "").split()
        if tag == "td" and "tok" in names:
            self.states[names[1]] += 1
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.sources += [name for name, _ in attrs if name in ("src", "href", "srcset")]


def test_every_token_is_there_with_its_state() -> None:
    trace = make_trace()
    rounds = trace.answers[0].rounds
    found = Reader(trace_page(trace)).states
    states = Counter(guess.state for one in rounds for guess in one.guesses)
    assert found["accepted"] == states["accepted"] == trace.answers[0].stats.draft_n_accepted
    assert found["rejected"] == states["rejected"] > 0
    assert found["skipped"] == states["skipped"] > 0
    assert found["own"] == len(rounds)
    assert found["accepted"] + found["own"] == trace.answers[0].stats.predicted_n


def test_what_a_model_says_is_never_markup() -> None:
    page = trace_page(make_trace())
    found = Reader(page)
    assert (found.elements["script"], found.elements["img"], found.sources) == (1, 0, [])
    assert not found.handlers
    assert found.elements["table"] == 1
    assert "&lt;script&gt;alert(1)" in page
    assert "{{ 7 * 7 }}" in page
    for hidden in ("\u202e", "\x1b"):
        assert hidden not in page


def test_the_page_holds_no_address_and_may_load_nothing() -> None:
    page = trace_page(make_trace())
    assert not re.findall(r"\w+://|xmlns|@import|url\(", page)
    assert "default-src 'none'" in unescape(page)
    assert not {"link", "iframe", "object", "a", "form"} & Reader(page).elements.keys()


def test_one_round_and_a_round_without_time() -> None:
    tracer = Tracer(Pieces(), {"target": "t", "draft": "none"}, Stats("none"))
    tracer.begin("p")
    tracer.add(Round((7,), (), 0, 0.0, 0.0, 0.0))
    page = trace_page(tracer.trace())
    assert "1 round<" in page
    assert "It broke off." in page


def test_numbers_for_people() -> None:
    assert [percent(p) for p in (0, 1e-9, 0.0123, 0.5, 0.9999, 1)] == [
        *("0 %", "< 0.1 %", "1.23 %", "50 %", "> 99.9 %", "100 %")
    ]
    assert [seconds(s) for s in (0, 0.0123, 0.25, 2.5, 250)] == [
        *("0 s", "12.3 ms", "250 ms", "2.50 s", "250 s")
    ]
