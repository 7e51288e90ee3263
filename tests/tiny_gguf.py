"""Tiny random GGUF models for the tests, written on the spot in some milliseconds.

All kinds share one byte-level BPE vocabulary: 5 special tokens (ids 0 to 4), the 256 bytes
(id = 5 + byte), some merges of common English pairs, then fillers up to `n_vocab`. Every matrix
comes from its own generator, seeded by (seed, name), row by row: models of one seed have the
same weights wherever both have them, whatever their `n_vocab` and `n_layer`. With some `noise`
added, a model of the target's seed is a draft that often agrees with it.

llama.cpp's logits depend a little on the batch size (up to 0.005; 0.03 from 64 tokens on), as it
rounds keys, values and attention to 16 bits. With F32 caches and no flash attention they agree
to 1e-4.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

import gguf
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Value = bool | int | float | str | list[int] | list[bool] | list[str]

UNK, BOS, EOS, IM_START, IM_END = range(5)
SPECIALS = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
FIRST_BYTE = len(SPECIALS)
FIRST_MERGE = FIRST_BYTE + 256
MERGES = [
    *[(" ", "t"), ("h", "e"), ("i", "n"), ("e", "r"), ("a", "n"), ("r", "e"), ("o", "n")],
    *[("a", "t"), ("e", "n"), ("n", "d"), ("t", "i"), ("e", "s"), ("o", "r"), ("t", "e")],
    *[("o", "f"), ("e", "d"), ("i", "s"), ("i", "t"), ("a", "l"), ("a", "r"), ("s", "t")],
    *[("t", "o"), ("n", "t"), ("l", "l"), ("o", "u"), (" ", "a"), (" ", "s"), (" ", "w")],
    *[("in", "g"), (" t", "he")],
]
FIRST_FILLER = FIRST_MERGE + len(MERGES)

N_EMBD, N_HEAD, N_HEAD_KV, N_FF = 64, 4, 2, 128
N_KV = N_EMBD // N_HEAD * N_HEAD_KV
D_CONV, D_INNER, D_STATE, DT_RANK = 4, 2 * N_EMBD, 8, 4

_ATTENTION: dict[str, Value] = {
    "feed_forward_length": N_FF,
    "attention.head_count": N_HEAD,
    "attention.head_count_kv": N_HEAD_KV,
}
_RECURRENT: dict[str, Value] = {
    "ssm.conv_kernel": D_CONV,
    "ssm.inner_size": D_INNER,
    "ssm.state_size": D_STATE,
    "ssm.time_step_rank": DT_RANK,
}

DRAFT_NOISE = 0.05  # such a draft has the target's greedy token 3 times of 4


class Options(TypedDict, total=False):
    """Keywords of every writer; `Tiny` has the meanings and defaults."""

    seed: int
    n_vocab: int
    replace: Mapping[int, str] | None
    n_layer: int
    n_ctx_train: int
    chat_template: str | None
    add_bos: bool
    sharpness: float
    special: float
    noise: float
    noise_seed: int


@dataclass(frozen=True)
class Tiny:
    """What all kinds of tiny models can vary."""

    seed: int = 0
    n_vocab: int = 320  # at least 261: specials and bytes
    replace: Mapping[int, str] | None = None  # token id -> other text
    n_layer: int = 2
    n_ctx_train: int = 2048
    chat_template: str | None = None
    add_bos: bool = True
    sharpness: float = 3.0  # standard deviation of the logits
    special: float = 0.0  # scale of the specials' logits: at 0, the end next to never comes
    noise: float = 0.0  # size of the random change to every matrix, relative to its weights
    noise_seed: int = 1


def write_llama(path: Path, **options: Unpack[Options]) -> Path:
    """Write a plain transformer, whose memory can drop any tail."""
    return _write(path, "llama", _ATTENTION, Tiny(**options))


def write_swa(path: Path, *, window: int = 16, **options: Unpack[Options]) -> Path:
    """Write a granite_swa: a llama with sliding-window attention at even layers, full at odd."""
    tiny = Tiny(**options)
    keys: dict[str, Value] = {
        **_ATTENTION,
        "attention.sliding_window": window,
        "attention.sliding_window_pattern": [i % 2 == 0 for i in range(tiny.n_layer)],
        "logit_scale": 1.0,
    }
    return _write(path, "granite_swa", keys, tiny)


def write_recurrent(path: Path, **options: Unpack[Options]) -> Path:
    """Write a mamba, whose memory cannot drop a tail."""
    return _write(path, "mamba", _RECURRENT, Tiny(**options))


def write_hybrid(path: Path, **options: Unpack[Options]) -> Path:
    """Write a jamba (mamba layers at even numbers, attention at odd ones): no tail drop either."""
    tiny = Tiny(**options)
    n_head_kv = [N_HEAD_KV if _attends("jamba", i) else 0 for i in range(tiny.n_layer)]
    keys = {**_ATTENTION, **_RECURRENT, "attention.head_count_kv": n_head_kv}
    return _write(path, "jamba", keys, tiny)


def _write(path: Path, arch: str, keys: Mapping[str, Value], tiny: Tiny) -> Path:
    writer = gguf.GGUFWriter(path, arch)
    for key, value in (_common_keys(tiny) | dict(keys)).items():
        _add(writer, f"{arch}.{key}", value)
    for key, value in _vocabulary(tiny).items():
        _add(writer, f"tokenizer.{key}", value)
    for name, tensor in _tensors(arch, tiny).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, key: str, value: Value) -> None:
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case list():
            writer.add_array(key, value)


def _common_keys(tiny: Tiny) -> dict[str, Value]:
    return {
        "context_length": tiny.n_ctx_train,
        "embedding_length": N_EMBD,
        "block_count": tiny.n_layer,
        "attention.layer_norm_rms_epsilon": 1e-5,
    }


def _vocabulary(tiny: Tiny) -> dict[str, Value]:
    if tiny.n_vocab < FIRST_MERGE:
        raise ValueError(f"n_vocab is {tiny.n_vocab}, needs {FIRST_MERGE} or more")
    texts = [text.encode() for text in SPECIALS] + [bytes([byte]) for byte in range(256)]
    texts += [(a + b).encode() for a, b in MERGES]
    texts += [f" w{i}".encode() for i in range(tiny.n_vocab)]
    tokens = [_token(text) for text in texts[: tiny.n_vocab]]
    for token, text in (tiny.replace or {}).items():
        tokens[token] = _token(text.encode())
    merges = [" ".join(_token(part.encode()) for part in pair) for pair in MERGES]
    merges = merges[: tiny.n_vocab - FIRST_MERGE]
    types = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * (FIRST_BYTE - 1)
    types += [gguf.TokenType.NORMAL] * (tiny.n_vocab - FIRST_BYTE)
    keys: dict[str, Value] = {
        "ggml.model": "gpt2",
        "ggml.pre": "gpt-2",
        "ggml.tokens": tokens,
        "ggml.token_type": [int(kind) for kind in types],
        "ggml.merges": merges,
        "ggml.unknown_token_id": UNK,
        "ggml.bos_token_id": BOS,
        "ggml.eos_token_id": EOS,
        "ggml.eot_token_id": IM_END,
        "ggml.add_bos_token": tiny.add_bos,
    }
    if tiny.chat_template is not None:
        keys["chat_template"] = tiny.chat_template
    return keys


def _byte_alphabet() -> dict[int, int]:
    """Map each byte to GPT-2's printable character for it."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: byte for byte in printable} | {byte: 256 + i for i, byte in enumerate(others)}


_BYTE_ALPHABET = _byte_alphabet()


def _token(text: bytes) -> str:
    return "".join(chr(_BYTE_ALPHABET[byte]) for byte in text)


def _attends(arch: str, layer: int) -> bool:
    return arch in ("llama", "granite_swa") or (arch == "jamba" and layer % 2 == 1)


def _tensors(arch: str, tiny: Tiny) -> dict[str, Array]:
    output = _random(tiny, "output", tiny.n_vocab, N_EMBD, tiny.sharpness)
    output[:FIRST_BYTE] *= tiny.special
    tensors = {
        "token_embd.weight": _random(tiny, "token_embd", tiny.n_vocab, N_EMBD, N_EMBD**0.5),
        "output_norm.weight": _ones(N_EMBD),
        "output.weight": output,
    }
    for i in range(tiny.n_layer):
        layer = _attention(arch, tiny, i) if _attends(arch, i) else _mamba(arch, tiny, i)
        if arch != "mamba":
            layer |= _feed_forward(tiny, i)
        tensors |= {f"blk.{i}.{name}": tensor for name, tensor in layer.items()}
    return tensors


def _attention(arch: str, tiny: Tiny, i: int) -> dict[str, Array]:
    tensors = {
        "attn_norm.weight": _ones(N_EMBD),
        "attn_q.weight": _random(tiny, f"{i}.q", N_EMBD, N_EMBD, 1.2),
        "attn_k.weight": _random(tiny, f"{i}.k", N_KV, N_EMBD, 1.2),
        "attn_v.weight": _random(tiny, f"{i}.v", N_KV, N_EMBD),
        "attn_output.weight": _random(tiny, f"{i}.o", N_EMBD, N_EMBD),
    }
    if arch == "granite_swa":
        tensors["attn_sinks.weight"] = 0 * _ones(N_HEAD)
    return tensors


def _feed_forward(tiny: Tiny, i: int) -> dict[str, Array]:
    return {
        "ffn_norm.weight": _ones(N_EMBD),
        "ffn_gate.weight": _random(tiny, f"{i}.gate", N_FF, N_EMBD, 1.5),
        "ffn_up.weight": _random(tiny, f"{i}.up", N_FF, N_EMBD),
        "ffn_down.weight": _random(tiny, f"{i}.down", N_EMBD, N_FF),
    }


def _mamba(arch: str, tiny: Tiny, i: int) -> dict[str, Array]:
    decay = -np.arange(1, D_STATE + 1, dtype=np.float32)
    tensors = {
        "attn_norm.weight": _ones(N_EMBD),
        "ssm_in.weight": _random(tiny, f"{i}.in", 2 * D_INNER, N_EMBD),
        "ssm_conv1d.weight": _random(tiny, f"{i}.conv", D_INNER, D_CONV),
        "ssm_conv1d.bias": 0 * _ones(D_INNER),
        "ssm_x.weight": _random(tiny, f"{i}.x", DT_RANK + 2 * D_STATE, D_INNER),
        "ssm_dt.weight": _random(tiny, f"{i}.dt", D_INNER, DT_RANK),
        "ssm_dt.bias": -2 * _ones(D_INNER),  # steps of about 0.1
        "ssm_a": np.tile(decay, (D_INNER, 1)),
        "ssm_d": _ones(D_INNER),
        "ssm_out.weight": _random(tiny, f"{i}.out", N_EMBD, D_INNER, 2.0),
    }
    if arch == "jamba":
        tensors["ssm_dt_norm.weight"] = _ones(DT_RANK)
        tensors["ssm_b_norm.weight"] = _ones(D_STATE)
        tensors["ssm_c_norm.weight"] = _ones(D_STATE)
    return tensors


def _ones(n: int) -> Array:
    return np.ones(n, np.float32)


def _random(tiny: Tiny, name: str, n_out: int, n_in: int, gain: float = 1.0) -> Array:
    """A random matrix that multiplies the size of its input by about `gain`."""
    weights = _normal(tiny.seed, name, n_out, n_in)
    if tiny.noise:
        other = _normal(tiny.noise_seed, "noise " + name, n_out, n_in)
        weights += np.float32(tiny.noise) * other
        weights /= np.float32((1 + tiny.noise**2) ** 0.5)
    return weights * np.float32(gain * n_in**-0.5)


def _normal(seed: int, name: str, n_out: int, n_in: int) -> Array:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return rng.standard_normal((n_out, n_in), np.float32)
