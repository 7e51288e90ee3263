"""What people read: token bytes as text, stop strings, what a terminal may see, sizes."""

import codecs
from collections.abc import Sequence


class StopStrings:
    """Ends a text, which comes piece by piece, before the first of some strings.

    Holds back what may become one.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self.found = False  # nothing more is wanted

    def feed(self, text: str) -> str:
        """Take text in; return what is certain to stay."""
        return self._release(text, final=False)

    def flush(self) -> str:
        """Return what was held back: nothing more comes."""
        return self._release("", final=True)

    def _release(self, text: str, final: bool) -> str:
        text = self._held + text
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        self.found = bool(found)
        n_held = max((overlap(text, stop) for stop in self._stops), default=0)
        end = min(found) if found else len(text) if final else len(text) - n_held
        self._held = "" if found else text[end:]
        return text[:end]


class TextStream:
    """Turns the bytes of token after token into text.

    Holds back an unfinished character, and the beginning of what may become a stop string. A stop
    string itself is not part of the text. Bytes that are no UTF-8 become U+FFFD.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stops = StopStrings(stops)

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found: nothing more is wanted."""
        return self._stops.found

    def feed(self, data: bytes) -> str:
        """Take the bytes of one token in; return the text that is certain to stay."""
        return self._stops.feed(self._decoder.decode(data))

    def flush(self) -> str:
        """Return what was held back: nothing more comes."""
        rest = self._stops.feed(self._decoder.decode(b"", final=True))
        return rest if self.stopped else rest + self._stops.flush()


def overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of the text that begins the stop string."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)


# C0, DEL and C1 could move the cursor, retitle the window or worse. Each is shown as its picture
# (U+2400...) or, where there is none, U+FFFD. Newline and tab stay; a carriage return is dropped.
_NEUTRAL = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    ord("\r"): "",
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
}


def terminal_safe(text: str) -> str:
    """Return the text with nothing left in it that a terminal would obey."""
    return text.translate(_NEUTRAL)


def human_size(n_bytes: float) -> str:
    """Return a size in decimal units, as download pages and sellers of memory give it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"
