"""Bytes to text: characters over tokens, stop strings over tokens, harmless on a terminal."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specli.text import TerminalText, TextStream, human_size, shortened, terminal_safe


def chunked(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut bytes into pieces, as tokens would."""
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def streamed(pieces: list[bytes], stops: list[str] | None = None) -> tuple[str, bool]:
    stream = TextStream(stops or [])
    text = ""
    for piece in pieces:
        text += stream.feed(piece)
        if stream.stopped:
            return text, True
    text += stream.flush()
    return text, stream.stopped


CUTS = st.lists(st.integers(0, 60))


@given(st.text(), CUTS)
def test_text_comes_out_as_it_went_in(text: str, cuts: list[int]) -> None:
    assert streamed(chunked(text.encode(), cuts)) == (text, False)


@given(st.binary(), CUTS)
def test_any_bytes_come_out_as_one_decoding_would_show_them(data: bytes, cuts: list[int]) -> None:
    assert streamed(chunked(data, cuts)) == (data.decode("utf-8", "replace"), False)


def test_a_character_comes_once_it_is_whole() -> None:
    stream = TextStream()
    assert [stream.feed(bytes([byte])) for byte in "🙂a".encode()] == ["", "", "", "🙂", "a"]


def test_half_a_character_at_the_end_is_shown_as_such() -> None:
    stream = TextStream()
    assert stream.feed("🙂".encode()[:2]) == ""
    assert stream.flush() == "\ufffd"


@given(
    st.text("abX", max_size=40),
    st.lists(st.text("abX", min_size=1, max_size=4), min_size=1, max_size=3),
    CUTS,
)
def test_a_stop_string_ends_the_text_however_it_is_cut(
    text: str, stops: list[str], cuts: list[int]
) -> None:
    """What was shown never contains a stop string, and never has to be taken back."""
    shown, stopped = streamed(chunked(text.encode(), cuts), stops)
    assert text.startswith(shown)
    assert stopped == any(stop in text for stop in stops)
    assert not any(stop in shown for stop in stops)
    if stopped:
        assert any(text[len(shown) :].startswith(stop) for stop in stops)
    else:
        assert shown == text


def test_what_may_become_a_stop_string_is_held_back() -> None:
    stream = TextStream(["END", "\n\n"])
    assert stream.feed(b"a E") == "a "
    assert stream.feed(b"N") == ""
    assert stream.feed(b"T\n") == "ENT"
    assert not stream.stopped
    assert stream.feed(b"\n") == ""
    assert stream.stopped


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    safe = terminal_safe(text)
    assert not any(ord(c) < 0x20 and c not in "\n\t" for c in safe)
    assert not any(0x7F <= ord(c) < 0xA0 for c in safe)


TURNS = st.text(
    st.sampled_from("ab ש\n\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069🏴\U000e0067")
)


@settings(max_examples=300, deadline=None)
@given(TURNS, CUTS)
def test_what_turns_the_direction_ends_with_its_line(text: str, cuts: list[int]) -> None:
    stream = TerminalText()
    pieces = chunked(text.encode("utf-32-le"), [4 * cut for cut in cuts])
    shown = "".join(stream.feed(piece.decode("utf-32-le")) for piece in pieces) + stream.end()
    assert shown == terminal_safe(text)
    assert not {"\u202d", "\u202e"} & set(shown)
    letters = [c for c in text if c in "ab ש\n"]
    assert [c for c in shown if c in "ab ש\n"] == letters
    for line in shown.split("\n"):
        assert not re.search("(?<![🏴\U000e0067])\U000e0067", line)
        nested = line
        for _ in line:  # as with brackets: what is whole within others goes first
            nested = re.sub("[\u202a\u202b][^\u202a-\u202c\u2066-\u2069]*\u202c", "", nested)
            nested = re.sub("[\u2066-\u2068][^\u202c\u2066-\u2069]*\u2069", "", nested)
        assert not re.search("[\u202a-\u202c\u2066-\u2069]", nested)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("שלום \u2066abc 123\u2069 עולם", "שלום \u2066abc 123\u2069 עולם"),
        ("\u2067a\u202bb\u2069c\u202c", "\u2067a\u202bb\u2069c"),  # the isolate ends it
        ("a\u202ecod.exe", "a\ufffdcod.exe"),
        ("\u2067a\nb\u2069", "\u2067a\u2069\nb"),
        ("🏴\U000e0067\U000e007f", "🏴\U000e0067\U000e007f"),
        ("hi\U000e0068", "hi\ufffd"),
    ],
)
def test_what_hides_and_what_does_not(text: str, shown: str) -> None:
    assert terminal_safe(text) == shown


def test_control_characters_are_shown() -> None:
    assert terminal_safe("a\x1b[31mb\x07\r\n\tc\x9b2J") == "a␛[31mb␇\n\tc\ufffd2J"


def test_sizes_as_people_read_them() -> None:
    sizes = (0, 999, 98_362_432, 42_520_398_816, 2e12)
    assert [*map(human_size, sizes)] == ["0 bytes", "999 bytes", "98.4 MB", "42.5 GB", "2.0 TB"]


@given(st.text(st.sampled_from("ab \n")), st.integers(10, 40))
def test_what_is_long_is_cut_after_a_word(text: str, most: int) -> None:
    words = text.split()
    cut = shortened(text, most)
    assert len(cut) <= most
    if len(" ".join(words)) <= most:
        assert cut == " ".join(words)
    elif max(map(len, words)) < most // 4:
        *kept, dots = cut.split(" ")
        assert dots == "..."
        assert kept == words[: len(kept)]
