"""What people read: token bytes as text, stop strings, what a terminal may see, sizes."""

import codecs
import re
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
    # These two turn letters around, which no language needs. What annotates a text hides it.
    **dict.fromkeys((0x202D, 0x202E, *range(0xFFF9, 0xFFFC)), "\ufffd"),
}
_PDF, _PDI = "\u202c", "\u2069"
# What right-to-left text is embedded and isolated with, and what ends it.
_ENDS = {"\u202a": _PDF, "\u202b": _PDF, "\u2066": _PDI, "\u2067": _PDI, "\u2068": _PDI}
_DEEPEST = 60  # so many in each other, as Unicode has it (UAX 9) about
_FLAG = "\U0001f3f4"  # the flag of a region spells its name in tags, which nobody sees elsewhere
_KEPT_ACCOUNT_OF = re.compile("[\u202a-\u202c\u2066-\u2069\U000e0000-\U000e007f]")


class TerminalText:
    """Takes out of a text, which comes piece by piece, what a terminal would obey and what hides.

    What turns the direction of writing ends with its line at the latest.
    """

    def __init__(self) -> None:
        self._open: list[str] = []  # what ends each that has begun in this line
        self._in_flag = False

    def feed(self, text: str) -> str:
        """Return what can be shown of some more text."""
        safe = text.translate(_NEUTRAL)
        if self._open or self._in_flag or _KEPT_ACCOUNT_OF.search(safe):
            return "".join(map(self._shown, safe))
        self._in_flag = safe[-1:] == _FLAG
        return safe

    def end(self) -> str:
        """Return what ends all that has begun."""
        ends = "".join(reversed(self._open))
        self._open.clear()
        return ends

    def _shown(self, character: str) -> str:
        is_tag = "\U000e0000" <= character <= "\U000e007f"
        in_flag, self._in_flag = self._in_flag, character == _FLAG or (self._in_flag and is_tag)
        if is_tag:
            return character if in_flag else "\ufffd"
        if character == "\n":
            return f"{self.end()}\n"
        if end := _ENDS.get(character):
            return self._begun(character, end)
        return self._ended(character) if character in (_PDF, _PDI) else character

    def _begun(self, character: str, end: str) -> str:
        if len(self._open) >= _DEEPEST:
            return ""
        self._open.append(end)
        return character

    def _ended(self, end: str) -> str:
        """Return the end of what has begun; an isolate ends all that is embedded in it."""
        if end == _PDI and _PDI in self._open:
            while self._open.pop() != _PDI:
                pass
        elif end == _PDF and self._open[-1:] == [_PDF]:
            self._open.pop()
        else:
            return ""
        return end


def terminal_safe(text: str) -> str:
    """Return a whole text with nothing left in it that a terminal would obey, or that hides."""
    whole = TerminalText()
    return whole.feed(text) + whole.end()


def shortened(text: str, most: int) -> str:
    """Return a text in one line, cut after a word where it has more characters than that."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    head = line[: most - 4]
    at = head.rfind(" ") if line[most - 4] != " " else len(head)
    return f"{head[:at] if at > most // 2 else head} ..."


def human_size(n_bytes: float) -> str:
    """Return a size in decimal units, as download pages and sellers of memory give it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"
