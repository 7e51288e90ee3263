"""Numbers as ggml packs them: how many bytes they take, and the same in Q4_0."""

import ctypes
from functools import cache
from typing import Any

import numpy as np

from specli.backend.library import llama

Q4_0 = 2  # ggml_type (ggml.h): blocks of 32 numbers that share a scale


class _Traits(ctypes.Structure):
    """What ggml knows of a type: the first members of its ggml_type_traits (ggml.h)."""

    _fields_ = (
        ("type_name", ctypes.c_char_p),
        ("blck_size", ctypes.c_int64),
        ("blck_size_interleave", ctypes.c_int64),
        ("type_size", ctypes.c_size_t),
        ("is_quantized", ctypes.c_bool),
        ("to_float", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)),
    )


@cache
def _traits(kind: int) -> Any:
    of = llama()._lib.ggml_get_type_traits  # libllama finds what the libraries beneath it have
    of.restype = ctypes.POINTER(_Traits)
    return of(ctypes.c_int(kind)).contents


def n_block(kind: int) -> int:
    """Return how many numbers of a ggml_type share a scale: rows are multiples of that."""
    return int(_traits(kind).blck_size)


def n_bytes(kind: int, n: int) -> int:
    """Return how many bytes n numbers of a ggml_type take, whole blocks of them."""
    return n // n_block(kind) * int(_traits(kind).type_size)


def in_q4_0(data: bytes, kind: int) -> bytes:
    """Return numbers of a ggml_type in Q4_0: whole blocks of both. F32 is not possible."""
    n = len(data) // int(_traits(kind).type_size) * n_block(kind)
    numbers = np.empty(n, np.float32)
    made = ctypes.create_string_buffer(n_bytes(Q4_0, n))
    at = ctypes.c_void_p(numbers.ctypes.data)
    _traits(kind).to_float(data, at, n)
    one_row = ctypes.c_int64(0), ctypes.c_int64(1), ctypes.c_int64(n)
    llama()._lib.ggml_quantize_chunk(ctypes.c_int(Q4_0), at, made, *one_row, None)
    return made.raw
