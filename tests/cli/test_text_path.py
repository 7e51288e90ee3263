"""Any bytes that a model can utter: unchanged into a pipe, onto a terminal without an order."""

import io
import re
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specli.chat import Done, Text
from specli.cli.live import LiveOutput, Style
from specli.cli.output import HumanOutput
from specli.cli.screen import Screen
from specli.engine.stats import Stats
from specli.text import TextStream, terminal_safe
from tests.cli.live import Shown, answer

A_TIME, LONGEST = 25, 24  # so many streams of so many bytes at most make one example
EXAMPLES = 10_000 // A_TIME
OURS = re.compile(r"\x1b(\[\?(2026|25|7)[hl]|\[J|[DM78]|\[\d*m)")
ORDERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
PLAIN = Style(plain=True, with_stats=False)
# Bytes at random are mostly no UTF-8: so these come in between, cut anywhere by the tokens.
NASTY = [
    b"\x1b[2J",
    b"\x9b1m",
    b"\x1b]0;title\x07",
    b"\xc2\x9b",
    "é日🙂\u202e\u2028".encode(),
    b"\r\n\t",
    "\u2067\u202b".encode(),
    "\u2069".encode(),
]
BYTES = st.binary(min_size=A_TIME * 8, max_size=A_TIME * LONGEST)


def streams(data: bytes) -> Iterator[list[bytes]]:
    """Cut bytes into streams of tokens, some of which become nasty ones."""
    length = -(-len(data) // A_TIME)
    for start in range(0, len(data), length):
        part = data[start : start + length]
        size = 1 + part[0] % 5
        tokens = [part[i : i + size] for i in range(0, len(part), size)]
        yield [NASTY[t[0] // 8] if t[0] < 8 * len(NASTY) else t for t in tokens]


class Stdout(io.TextIOWrapper):
    """A standard output that remembers."""

    def __init__(self, is_terminal: bool) -> None:
        self.raw_bytes = io.BytesIO()
        super().__init__(self.raw_bytes, "utf-8")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def written(self) -> bytes:
        data = self.raw_bytes.getvalue()
        self.raw_bytes.seek(0)
        self.raw_bytes.truncate()
        return data


def events(tokens: list[bytes]) -> list[Text | Done]:
    """Return what an answer of these tokens is to an output."""
    stream = TextStream()
    texts = [*map(stream.feed, tokens), stream.flush()]
    return [*(Text(text, drafted=False) for text in texts if text), Done("eog", Stats("none"))]


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), deadline=None)
@given(BYTES)
def test_what_is_printed_is_what_was_decoded(data: bytes) -> None:
    all_tokens = [*streams(data)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", pipe := Stdout(is_terminal=False))
        into_pipe = HumanOutput(with_stats=False, ends_lines=False)
        for tokens in all_tokens:
            for event in events(tokens):
                into_pipe.event(event)
            assert pipe.written() == b"".join(tokens).decode("utf-8", "replace").encode()
        patch.setattr(sys, "stdout", terminal := Stdout(is_terminal=True))
        onto_terminal = LiveOutput(PLAIN, Screen(size=lambda: (40, 24), has_status=True))
        for tokens in all_tokens:
            for event in events(tokens):
                onto_terminal.event(event)
            printed = OURS.sub("", terminal.written().decode())
            decoded = terminal_safe(b"".join(tokens).decode("utf-8", "replace"))
            assert not ORDERS.search(printed)
            assert printed.removesuffix("\n") == decoded.removesuffix("\n")


@settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
@given(BYTES)
def test_set_as_markdown_no_order_of_the_model_is_left(data: bytes) -> None:
    frames: list[str] = []
    screen = Screen(frames.append, lambda: (40, 24), "utf-8", has_status=True)
    onto_terminal = LiveOutput(Style(with_stats=False), screen)
    ours = re.compile(rf"{OURS.pattern}|\x1b\[(\d+A|[\d;]+m)|\r")
    for tokens in streams(data):
        for event in events(tokens):
            onto_terminal.event(event)
        assert not ORDERS.search(ours.sub("", "".join(frames)))
        frames.clear()


PARTS = [
    *("# ", "- ", "1. ", "2) ", "```\n", "```py\n", "~~~\n", "> ", "|a|b|\n|-|-|\n", "|c|d|e|\n"),
    *(
        "\n",
        "\n\n",
        "    ",
        "  ",
        "word ",
        "**",
        "`",
        "*",
        "<b>",
        "<div>\n",
        "---\n",
        "===\n",
        "\t",
    ),
    *("* ", "\\", "日本", "[r]: z\n", "[x](y)", "![i](j)", "&amp;", "&#27;[2J", "long" * 12),
]


@example(["`", "`", "`", "word "], 1, 20)  # a code block that ends in its first line
@example(["- ", "|a|b|\n|-|-|\n", "\t", "```py\n"], 1, 20)  # one within a list
@example(["word ", "\n", "`", "`", "`", "word"], 3, 80)
@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=25), st.integers(1, 6), st.sampled_from([20, 80]))
def test_no_letter_is_lost_in_markdown_and_nothing_tears(
    parts: list[str], size: int, columns: int
) -> None:
    shown = Shown(Style(with_stats=False), columns, 8)
    shown.after = lambda: check(not any(shown.foot_rows))
    shown.play([*answer("".join(parts), size), Done("eog", Stats("both"))])
    wanted, found = ("".join(text) for text in (parts, shown.all_rows))
    assert sorted(filter(str.isalnum, wanted)) == sorted(filter(str.isalnum, found))


def check(holds: bool) -> None:
    assert holds
