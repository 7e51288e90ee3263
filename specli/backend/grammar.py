"""A grammar in GBNF over the tokens of a vocabulary, through llama.cpp's sampler of it."""

import codecs
import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from specli.backend.gbnf_limits import check_limits
from specli.backend.library import last_errors, llama
from specli.backend.model import Vocabulary
from specli.errors import UsageError

# States before the last one that are kept: more than a round can take back. Each holds a copy of
# the rules.
_KEPT = 128
_STDERR = Lock()  # one descriptor for all threads: to put back what another put there loses it
_FEW = 400  # tokens; to ask of the bytes first pays only for more
_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class LlamaGrammar:
    """The engine's Grammar: a state of the parser for each of the last tokens of the answer.

    Target and draft share it: what the draft has parsed is there when the target judges it, and
    what the target rejects is taken back by going on from an earlier state.
    """

    def __init__(self, vocabulary: Vocabulary, text: str) -> None:
        """Raise UsageError where the text is no grammar."""
        self._lib = llama()
        self._eog = vocabulary.eog
        self._root = _State(start(text, vocabulary.handle))
        # llama.cpp spells control tokens out: a string could hold one, and nobody would see it. And
        # it reads bytes as characters that are none. So tokens are of two kinds: those of text, and
        # those that go on with a character.
        self._pieces = pieces = [vocabulary.piece(i) for i in range(vocabulary.n_tokens)]
        self._begins = np.array(
            [
                i in self._eog or (piece and _begun(b"", piece) is not None)
                for i, piece in enumerate(pieces)
            ],
            np.bool,
        )
        self._goes_on = np.array([piece[:1] > b"\x7f" and piece[:1] < b"\xc0" for piece in pieces])
        # Where a byte may not follow, nothing that begins with it may.
        alone = {piece[0]: i for i, piece in enumerate(pieces) if len(piece) == 1}
        self._bytes = np.array(sorted(alone), np.int32)
        self._alone = np.array([alone[byte] for byte in sorted(alone)], np.int32)
        self._first = np.array([piece[0] if piece else 256 for piece in pieces], np.int32)
        self._candidates = np.zeros(vocabulary.n_tokens, _CANDIDATE)
        self._array = self._lib.llama_token_data_array()
        pointer = type(self._array.data)
        self._array.data = ctypes.cast(self._candidates.ctypes.data, pointer)
        self._n_prompt = 0
        self._path: list[int] = []  # tokens of the answer
        self._states: list[_State] = []  # after the last tokens of the path, one for each

    def begin(self, n_prompt: int) -> None:
        """Begin an answer, which follows the first n_prompt tokens of its histories."""
        self._n_prompt = n_prompt
        self._cut(0)

    def allowed(self, tokens: NDArray[np.int32], history: Sequence[int]) -> NDArray[np.bool] | None:
        """Return which of the tokens may follow; None where the answer is none of the grammar."""
        state = self._state_after(history[self._n_prompt :])
        return None if state is None else self._check(state, tokens)

    def close(self) -> None:
        """Free all states."""
        self._cut(0)
        if self._root.handle:
            self._lib.llama_sampler_free(self._root.handle)
            self._root.handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _state_after(self, answer: Sequence[int]) -> "_State | None":
        """Return the state after these tokens, None where they break the grammar or have ended."""
        n_shared = min(len(self._path), len(answer))
        if self._path[:n_shared] != answer[:n_shared]:
            n_shared = next(i for i in range(n_shared) if self._path[i] != answer[i])
            self._cut(n_shared)
        if (state := self._kept(n_shared)) is None:  # taken back further than states are kept
            self._cut(0)
            n_shared, state = 0, self._root
        for token in answer[n_shared:]:
            # llama.cpp ends the process over a token that may not follow.
            if token in self._eog or not self._check(state, np.array([token], np.int32))[0]:
                return None
            begun = _begun(state.begun, self._pieces[token]) or b""
            state = _State(self._lib.llama_sampler_clone(state.handle), begun)
            self._lib.llama_sampler_accept(state.handle, token)
            self._path.append(token)
            self._states.append(state)
            if len(self._states) > _KEPT:
                self._lib.llama_sampler_free(self._states.pop(0).handle)
        return state

    def _kept(self, length: int) -> "_State | None":
        """Return the state after the first tokens of the path, None where it is not kept."""
        if length == 0:
            return self._root
        at = len(self._states) - 1 - (len(self._path) - length)
        return self._states[at] if at >= 0 else None

    def _cut(self, length: int) -> None:
        while len(self._path) > length:
            self._path.pop()
            if self._states:
                self._lib.llama_sampler_free(self._states.pop().handle)

    def _check(self, state: "_State", tokens: NDArray[np.int32]) -> NDArray[np.bool]:
        if len(tokens) <= _FEW:
            return self._ask(state, tokens)
        if state.may_begin is None:
            state.may_begin = np.ones(257, np.bool)
            state.may_begin[self._bytes] = self._ask(state, self._alone)
        result = state.may_begin[self._first[tokens]]
        result[result] = self._ask(state, tokens[result])
        return result

    def _ask(self, state: "_State", tokens: NDArray[np.int32]) -> NDArray[np.bool]:
        n = len(tokens)
        candidates = self._candidates[:n]
        candidates["id"], candidates["logit"] = tokens, 0.0
        self._array.size, self._array.selected, self._array.sorted = n, -1, False
        if n:
            self._lib.llama_sampler_apply(state.handle, ctypes.byref(self._array))
        result: NDArray[np.bool] = candidates["logit"] == 0.0
        if not state.begun:
            return result & self._begins[tokens]
        result &= self._goes_on[tokens]
        for at in result.nonzero()[0]:
            result[at] = _begun(state.begun, self._pieces[tokens[at]]) is not None
        return result


@dataclass(slots=True)
class _State:
    """llama.cpp's sampler after some tokens.

    begun: the first bytes of a character. may_begin: bytes that may follow; 256 for the end.
    """

    handle: Any
    begun: bytes = b""
    may_begin: NDArray[np.bool] | None = None


def _begun(before: bytes, piece: bytes) -> bytes | None:
    """Return the first bytes of a character that text ends in; None where it is no UTF-8."""
    if not before and piece.isascii():
        return b""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(before + piece)
    except UnicodeDecodeError:
        return None
    begun = decoder.getstate()[0]
    # Python waits for the last byte of a surrogate before it refuses it.
    return None if begun[:1] == b"\xed" and begun[1:] > b"\x9f" else begun


def check_gbnf(text: str) -> None:
    """Raise UsageError where a text is no grammar."""
    llama().llama_sampler_free(start(text, None))


def start(text: str, vocabulary: Any) -> Any:
    """Return llama.cpp's sampler of a grammar. Raises UsageError where the text is none."""
    lib = llama()
    check_limits(text)
    last_errors()
    with _stderr() as said:
        handle = lib.llama_sampler_init_grammar(vocabulary, text.encode(), b"root")
    if not handle or not text.strip():
        raise UsageError(
            f"the grammar is not valid GBNF: {_reason(said, text) or last_errors()}",
            'for example: root ::= "yes" | "no"',
        )
    return handle


def _reason(said: list[str], text: str) -> str:
    """Return what llama.cpp's parser wrote, with the line where it stopped."""
    first, _, rest = "".join(said).partition("\n")
    reason = first.rpartition("error parsing grammar: ")[2].strip()
    if not text.strip():
        return "it is empty"
    before, _, _ = reason.partition(" at ")
    place = reason[len(before) + len(" at ") :] + (f"\n{rest}" if rest.strip() else "")
    at = text.find(place.split("\n")[0]) if place.strip() else -1
    if reason.endswith(" at"):  # nothing follows
        return f"{reason} the end"
    if before == reason or at < 0:
        return reason
    return f"{before} at {place.splitlines()[0][:40]!r} in line {text[:at].count(chr(10)) + 1}"


@contextmanager
def _stderr() -> Iterator[list[str]]:
    """Collect what C code writes to the file descriptor of stderr."""
    lines: list[str] = []
    with _STDERR, TemporaryFile() as file:
        sys.stderr.flush()
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            lines.append(file.read().decode("utf-8", "replace"))
