"""Text of a model, harmless and with nothing hidden in it."""

import codecs
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

_MARKS = {" ": "·", "\n": "↵", "\t": "⇥"}
_JOINERS = "\u200c\u200d"  # part of how words and emoji are written
_HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of text. is_mark: it stands for something that cannot be seen."""

    text: str
    is_mark: bool


def visible(data: bytes) -> list[Part]:
    """Return the bytes of a token: text, and marks for spaces, control characters, other bytes."""
    text = data.decode("utf-8", "surrogateescape")
    parts = []
    for kind, group in groupby(text, _kind):
        characters = "".join(group)
        if kind == "byte":
            shown = characters.encode("utf-8", "surrogateescape").hex(" ").upper()
            parts.append(Part(f"⟨{shown}⟩", True))
        elif kind == "mark":
            parts.append(Part("".join(map(_mark, characters)), True))
        else:
            lone = not parts and unicodedata.category(characters[0]).startswith("M")
            parts.append(Part(f"◌{characters}" if lone else characters, False))
    return parts


def readable(text: str) -> str:
    """Return text as it is read, with marks for what would hide or turn it around."""
    return "".join(_mark(c) if _is_hidden(c) and c not in f"\n\t{_JOINERS}" else c for c in text)


def decoded(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the text of each token; a character of several tokens comes with the last of them."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _kind(character: str) -> str:
    if "\udc80" <= character <= "\udcff":
        return "byte"
    is_space = unicodedata.category(character) == "Zs"
    return "mark" if is_space or _is_hidden(character) else "text"


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def _mark(character: str) -> str:
    """Return a mark: a picture for C0 and DEL, the code for all others without one."""
    if character in _MARKS:
        return _MARKS[character]
    if character < " ":
        return chr(0x2400 + ord(character))
    return "␡" if character == "\x7f" else f"⟨U+{ord(character):04X}⟩"
