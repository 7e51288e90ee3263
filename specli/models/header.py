"""The header of a GGUF file: its metadata and its list of tensors, nothing of the weights.

The format is llama.cpp's, version 2 and 3 (docs/gguf.md in the ggml repository). The `gguf` package
reads it too, but takes up to a minute for a large vocabulary: docs/adr/0006.
"""

import glob
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

from specli.errors import ModelError
from specli.files import open_regular

# What a key holds: int, float, bool, str, a list of numbers, or a list of texts as bytes.
Value: TypeAlias = Any

_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
_STRING, _ARRAY = 8, 9
_UNWANTED = {"tokenizer.ggml.merges"}  # twice as many texts as tokens, and no use to anybody here
_MAX_TEXT = 1 << 24  # a longer text, chat templates among them, is nonsense
_MAX_COUNT = 1 << 26  # more keys, tensors or array items than this is no model but nonsense


class TruncatedError(ModelError):
    """The bytes end before the header does."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor. shape: innermost dimension first. type: ggml_type. offset: after the header."""

    name: str
    shape: tuple[int, ...]
    type: int
    offset: int

    @property
    def n_elements(self) -> int:
        """How many numbers it holds."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Header:
    """Everything that comes before the weights.

    tensors_at: the byte where the list of tensors begins. size_bytes: where it ends.
    """

    values: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    tensors_at: int
    size_bytes: int

    @property
    def architecture(self) -> str:
        """The name that llama.cpp has for the kind of network."""
        return str(self.values.get("general.architecture", ""))

    def of_architecture(self, key: str, default: Value = 0) -> Value:
        """Return a value whose key begins with the architecture, such as `block_count`."""
        return self.values.get(f"{self.architecture}.{key}", default)

    @property
    def n_params(self) -> int:
        """How many numbers all tensors hold together."""
        return sum(tensor.n_elements for tensor in self.tensors)


def read_header(path: Path) -> Header:
    """Read the header of a file, reading no more of it than that takes. Raises ModelError."""
    size = 32 << 20  # enough for all but the largest vocabularies
    try:
        with open_regular(path) as file:
            while True:
                file.seek(0)
                data = file.read(size)
                try:
                    return parse_header(data)
                except TruncatedError:
                    if len(data) < size:
                        raise
                    size *= 4
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from None
    except ModelError as error:
        raise ModelError(f"{path}: {error.message}", error.hint) from None


def parts_of(path: Path) -> list[Path]:
    """Return the files of a model: of a split one (-00001-of-0000N) all parts that are there."""
    split = re.search(r"-00001-of-(\d{5})\.gguf$", path.name)
    start = glob.escape(path.name[: split.start()]) if split else ""
    parts = path.parent.glob(f"{start}-?????-of-{split[1]}.gguf") if split else [path]
    return sorted(part for part in parts if part.is_file())


def is_part(file: Path, model: Path) -> bool:
    """Say whether a file is one of those of a model, by whatever name."""
    try:
        return any(part.samefile(file) for part in parts_of(model))
    except OSError:  # there is none
        return False


def file_bytes(path: Path) -> int:
    """Return the size of a model's file, of a split model that of all parts."""
    return sum(part.stat().st_size for part in parts_of(path))


def architecture_of(path: Path) -> str:
    """Return the architecture alone: by custom it is the first key of the file.

    "" where the file cannot be read as one: loading it will say why.
    """
    try:
        with open_regular(path) as file:
            reader = _Reader(file.read(4096))
        reader.take(24)
        if reader.text() == "general.architecture":
            return str(reader.value(reader.scalar("I")))
        return read_header(path).architecture
    except (OSError, ModelError):
        return ""


def parse_header(data: bytes) -> Header:
    """Parse the first bytes of a GGUF file. Raises TruncatedError where more of them are needed."""
    reader = _Reader(data)
    if (magic := reader.take(4)) != b"GGUF":
        raise ModelError(f"is not a GGUF file (it begins with {magic!r})")
    if (version := reader.scalar("I")) not in (2, 3):
        raise ModelError(f"has GGUF version {version}, 2 or 3 is wanted")
    n_tensors, n_values = reader.count(), reader.count()
    values = dict(reader.pair() for _ in range(n_values))
    tensors_at = reader.at
    tensors = tuple(reader.tensor() for _ in range(n_tensors))
    return Header(values, tensors, tensors_at, reader.at)


class _Reader:
    """Takes one thing after another from bytes."""

    def __init__(self, data: bytes) -> None:
        self.at = 0
        self._data = data

    def take(self, n: int) -> bytes:
        start, self.at = self.at, self.at + n
        if self.at > len(self._data):
            raise TruncatedError("ends in the middle of its header", "fetch it again")
        return self._data[start : self.at]

    def scalar(self, code: str) -> Value:
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def count(self) -> int:
        n = int(self.scalar("Q"))
        if n > _MAX_COUNT:
            raise ModelError(f"has a header that makes no sense (a count of {n})", "fetch it again")
        return n

    def text(self) -> str:
        return self.take(self._length(self.count())).decode("utf-8", "replace")

    def pair(self) -> tuple[str, Value]:
        key = self.text()
        return key, self.value(self.scalar("I"), wanted=key not in _UNWANTED)

    def value(self, kind: int, wanted: bool = True) -> Value:
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.scalar(self._code(kind))
        kind, n = self.scalar("I"), self.count()
        if kind == _STRING:
            return self._texts(n, wanted)
        if kind == _ARRAY:
            raise ModelError("has a header with arrays of arrays", "fetch it again")
        return list(struct.unpack(f"<{n}{self._code(kind)}", self.take(n * self._width(kind))))

    def tensor(self) -> Tensor:
        name, n_dims = self.text(), self.scalar("I")
        if n_dims > 8:
            raise ModelError(f"has a tensor of {n_dims} dimensions", "fetch it again")
        shape = tuple(self.scalar("Q") for _ in range(n_dims))
        return Tensor(name, shape, self.scalar("I"), self.scalar("Q"))

    def _texts(self, n: int, wanted: bool) -> list[bytes]:
        """Return n texts, or step over them; there are 100,000 and more, hence the flat loop."""
        data, at, length = self._data, self.at, struct.Struct("<Q").unpack_from
        texts = []
        try:
            for _ in range(n):
                start = at + 8
                at = start + self._length(length(data, at)[0])
                if at > len(data):
                    break
                if wanted:
                    texts.append(data[start:at])
        except struct.error:
            at = len(data) + 1
        self.at = at
        self.take(0)
        return texts

    def _length(self, n: int) -> int:
        if n > _MAX_TEXT:
            raise ModelError(f"has a header with a text of {n} bytes", "fetch it again")
        return n

    def _code(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise ModelError(
                f"has a header that makes no sense (value type {kind})", "fetch it again"
            )
        return _SCALARS[kind]

    def _width(self, kind: int) -> int:
        return struct.calcsize(f"<{self._code(kind)}")
