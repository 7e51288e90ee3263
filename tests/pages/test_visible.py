"""Nothing that a model writes is hidden, and nothing is obeyed."""

import pytest

from specli.pages.visible import Part, decoded, readable, visible


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b" the", [Part("·", True), Part("the", False)]),
        (b"\n\t\r\x1b\x7f", [Part("↵⇥␍␛␡", True)]),
        (b"\xe2\x82", [Part("⟨E2 82⟩", True)]),
        (b"a\xffb", [Part("a", False), Part("⟨FF⟩", True), Part("b", False)]),
        ("\u202e\u200b\ufeff\xa0".encode(), [Part("⟨U+202E⟩⟨U+200B⟩⟨U+FEFF⟩⟨U+00A0⟩", True)]),
        ("\u0301".encode(), [Part("◌\u0301", False)]),
        ("é日שלום".encode(), [Part("é日שלום", False)]),
        (b"", []),
    ],
)
def test_a_token(data: bytes, shown: list[Part]) -> None:
    assert visible(data) == shown


def test_text_keeps_its_lines_and_emoji_but_nothing_that_turns_it_around() -> None:
    assert readable("a\n\tb 👩\u200d👧") == "a\n\tb 👩\u200d👧"
    assert readable("\u202e\x00\x1b\x85") == "⟨U+202E⟩␀␛⟨U+0085⟩"


def test_a_character_of_several_tokens_comes_with_the_last() -> None:
    assert list(decoded([b"\xe2\x82", b"\xac", b"\xff", b"\xe2"])) == ["", "€", "�", "", "�"]
