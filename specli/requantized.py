"""A draft's weights in four bits, as it is loaded: a guess costs what has to be read for it.

docs/adr/0024. The copy lies in memory, in a file without a name (memfd_create(2), Linux).
"""

import errno
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from specli.backend.ggml import Q4_0, in_q4_0, n_block, n_bytes
from specli.errors import Interrupted, ModelError
from specli.files import open_regular
from specli.models.header import Header, Tensor, parts_of, read_header

# ggml_type. CPUs are slower with the first ones than with Q4_0. The output layer, which every guess
# reads whole, is left in more bits by quantizers: there also what is only larger is worth it.
_TYPES = frozenset({3, 6, 7, 8})  # Q4_1, Q5_0, Q5_1, Q8_0
_OUTPUT_TYPES = _TYPES | {1, 13, 14, 30}  # F16, Q5_K, Q6_K, BF16
_N_AT_ONCE = 1 << 20  # numbers
_BYTES_AT_ONCE = 1 << 22
_MOST_BYTES = 8  # of a number of any type
# Among others no more threads (RuntimeError), and a libllama of the user's own that hides what ggml
# has (AttributeError).
_IMPOSSIBLE = OSError, ModelError, MemoryError, RuntimeError, AttributeError


@contextmanager
def in_four_bits(
    path: Path, n_threads: int, on_share: Callable[[float], bool]
) -> Iterator[Path | None]:
    """Yield a copy of a model in memory, its quantized matrices in Q4_0; None where there is none.

    That is where nothing would change, where the model lies in several files or is damaged, where
    there is no room, and where the system knows no files in memory. on_share: told how much is
    done, 0 to 1; a False breaks it off. Raises Interrupted.
    """
    try:
        copy = _copy(path, n_threads, on_share)
    except _IMPOSSIBLE:  # what is wrong with the model, its loading says better
        copy = None
    if copy is None:
        yield None
        return
    with copy:
        yield Path(f"/proc/self/fd/{copy.fileno()}")


def _copy(path: Path, n_threads: int, on_share: Callable[[float], bool]) -> BinaryIO | None:
    if not hasattr(os, "memfd_create") or parts_of(path) != [path]:
        return None
    header = read_header(path)
    wanted = _wanted(header.tensors)
    if not wanted:
        return None
    with open_regular(path) as source:
        parts = _lay_out(header, os.fstat(source.fileno()).st_size, wanted)
        head = source.read(header.tensors_at) + _list_of(parts)
        head += bytes(-len(head) % _alignment(header))
        pieces = [piece for part in parts for piece in part.pieces(len(head))]
        copy = os.fdopen(os.memfd_create("draft"), "w+b")
        pool = ThreadPoolExecutor(n_threads)
        try:
            copy.write(head)
            copy.flush()
            moved = pool.map(lambda piece: piece.move(source.fileno(), copy.fileno()), pieces)
            for n, _ in enumerate(moved, 1):
                if not on_share(n / len(pieces)):
                    raise Interrupted("interrupted")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            copy.close()
            raise
        pool.shutdown()
    return copy


def _wanted(tensors: Sequence[Tensor]) -> frozenset[str]:
    """Return the names of those that become smaller: matrices of blocks, and the output layer."""
    names = {tensor.name for tensor in tensors}
    output = "output.weight" if "output.weight" in names else "token_embd.weight"
    return frozenset(
        tensor.name
        for tensor in tensors
        if len(tensor.shape) > 1
        and (
            (tensor.name.startswith("blk.") and tensor.type in _TYPES)
            or (tensor.name == output and tensor.type in _OUTPUT_TYPES)
        )
        and tensor.shape[0] % max(n_block(tensor.type), n_block(Q4_0)) == 0
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some bytes of a model, and where the copy has them. type: of numbers that change it."""

    at: int
    n_bytes: int
    place: int
    type: int | None = None

    def move(self, source: int, copy: int) -> None:
        """Write it to the copy. Raises ModelError, OSError."""
        data = os.pread(source, self.n_bytes, self.at)
        if len(data) < self.n_bytes:
            raise ModelError("ends in the middle of its weights")
        made = data if self.type is None else in_q4_0(data, self.type)
        if os.pwrite(copy, made, self.place) < len(made):
            raise OSError(errno.ENOSPC, "memory is full")


@dataclass(frozen=True, slots=True)
class _Part:
    """A tensor. at: its place in the file. place: in the copy, after the header. type: there."""

    tensor: Tensor
    at: int
    n_bytes: int
    place: int
    type: int

    def pieces(self, data_at: int) -> Iterator[_Piece]:
        """Yield it in pieces. data_at: where the copy's header ends."""
        place, old = data_at + self.place, self.tensor.type
        if self.type == old:
            for done in range(0, self.n_bytes, _BYTES_AT_ONCE):
                step = min(_BYTES_AT_ONCE, self.n_bytes - done)
                yield _Piece(self.at + done, step, place + done)
            return
        for done in range(0, self.tensor.n_elements, _N_AT_ONCE):
            step = min(_N_AT_ONCE, self.tensor.n_elements - done)
            begin, end = n_bytes(old, done), n_bytes(old, done + step)
            to = place + n_bytes(self.type, done)
            yield _Piece(self.at + begin, end - begin, to, old)


def _lay_out(header: Header, size_bytes: int, wanted: frozenset[str]) -> list[_Part]:
    """Return where all tensors go. size_bytes: of the file.

    Raises ModelError where one does not lie right behind the one before: moved together, what is
    damaged could be loaded.
    """
    align = _alignment(header)
    data_at = _padded(header.size_bytes, align)
    offsets = [*(tensor.offset for tensor in header.tensors), size_bytes - data_at]
    parts, place = [], offsets[0]
    for tensor, (begin, end) in zip(header.tensors, pairwise(offsets), strict=True):
        new, size = tensor.type, end - begin
        if tensor.name in wanted:
            new, whole = Q4_0, n_bytes(tensor.type, tensor.n_elements)
            is_last = tensor is header.tensors[-1]
            if size < whole or (size != _padded(whole, align) and not is_last):
                raise ModelError(f"has another tensor where {tensor.name} ends")
        elif not 0 <= size < _MOST_BYTES * tensor.n_elements + align:
            raise ModelError(f"has another place for what follows {tensor.name}")
        parts.append(_Part(tensor, data_at + begin, size, place, new))
        place += size if new == tensor.type else _padded(n_bytes(new, tensor.n_elements), align)
    return parts


def _padded(n: int, align: int) -> int:
    return -(-n // align) * align


def _list_of(parts: Sequence[_Part]) -> bytes:
    """Return the list of tensors as a header has it."""
    listed = []
    for part in parts:
        name, shape = part.tensor.name.encode(), part.tensor.shape
        listed += [struct.pack("<Q", len(name)), name]
        listed.append(struct.pack(f"<I{len(shape)}Q", len(shape), *shape))
        listed.append(struct.pack("<IQ", part.type, part.place))
    return b"".join(listed)


def _alignment(header: Header) -> int:
    align = header.values.get("general.alignment", 32)
    if not isinstance(align, int) or align < 1:
        raise ModelError(f"has an alignment of {align}")
    return align
