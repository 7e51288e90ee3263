"""Widen a small llama into one that answers the same, at a larger model's cost.

What it says stays, and with it how well a draft guesses that; its decodes cost what its shape does.
So a machine can be measured with a target of 15 GB that is made there, of a file of 100 MB.
"""

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import gguf
import numpy as np
import typer
from numpy.typing import NDArray

from scripts.command import run
from specli.errors import UsageError
from specli.files import check_place, partial_of, unwritable

Weights: TypeAlias = NDArray[np.float32]
Halves: TypeAlias = NDArray[np.uint16]  # BF16
_BF16 = gguf.GGMLQuantizationType.BF16
_CHANGED = (
    gguf.Keys.General.ARCHITECTURE,
    gguf.Keys.General.FILE_TYPE,
    gguf.Keys.LLM.EMBEDDING_LENGTH,
    gguf.Keys.LLM.FEED_FORWARD_LENGTH,
    gguf.Keys.LLM.BLOCK_COUNT,
    gguf.Keys.Attention.HEAD_COUNT,
    gguf.Keys.Attention.HEAD_COUNT_KV,
    gguf.Keys.Attention.KEY_LENGTH,
    gguf.Keys.Attention.VALUE_LENGTH,
    gguf.Keys.Attention.LAYERNORM_RMS_EPS,
)
_NORMS = "attn_norm", "ffn_norm", "output_norm"
_NOISE = 0.02  # standard deviation of weights that meet zeros


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a llama."""

    width: int  # of the embeddings
    n_ff: int  # rows of the feed-forward part
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_size: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where the weights of a small matrix are in the wide one.

    is_noisy: whether there is noise beside them, as what it makes meets zeros; else zeros are.
    """

    size: tuple[int, int]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    is_noisy: bool = False


def main(
    model: Annotated[Path, typer.Argument(help="A small GGUF model of llama's kind.")],
    twin: Annotated[Path, typer.Argument(help="What to write, in BF16.")],
    width: Annotated[int, typer.Option(help="Of the embeddings.")] = 4096,
    ffn: Annotated[int, typer.Option(help="Rows of the feed-forward part.")] = 14336,
    layers: Annotated[int, typer.Option()] = 32,
    heads: Annotated[int, typer.Option()] = 64,
    kv_heads: Annotated[int, typer.Option()] = 16,
) -> None:
    """Write a model that computes what another does, in a larger shape, by default that of 8B."""
    try:
        reader = gguf.GGUFReader(model)
    except (OSError, ValueError) as error:
        raise UsageError(f"{model}: cannot be read: {error}") from None
    check_place(twin)
    if twin.exists():
        raise UsageError(f"{twin}: exists already", "name another file")
    small = shape_of(reader)
    wide = Shape(width, ffn, layers, heads, kv_heads, small.head_size)
    partial = partial_of(twin)
    try:
        write(reader, partial, small, wide)
        partial.replace(twin)
    except OSError as error:
        raise unwritable(twin, error) from None
    finally:
        partial.unlink(missing_ok=True)


def shape_of(reader: gguf.GGUFReader) -> Shape:
    """Return the shape of a model. Raises UsageError where it is not of llama's kind."""
    kind = _value(reader, "general.architecture")
    if kind != "llama":
        raise UsageError(f"the model is of the kind {kind}, llama is wanted")
    width = _value(reader, "llama.embedding_length")
    n_heads = _value(reader, "llama.attention.head_count")
    return Shape(
        width,
        _value(reader, "llama.feed_forward_length"),
        _value(reader, "llama.block_count"),
        n_heads,
        _value(reader, "llama.attention.head_count_kv", n_heads),
        _value(reader, "llama.attention.key_length", width // max(n_heads, 1)),
    )


def _value(reader: gguf.GGUFReader, key: str, default: Any = None) -> Any:
    field = reader.get_field(key)
    found = default if field is None else field.contents()
    if not isinstance(found, str | int | float):
        raise UsageError(f"the model has {found} under {key}, one value is wanted")
    return found


def places(small: Shape, wide: Shape, n_vocab: int) -> dict[str, Place]:
    """Return where the matrices of a model are in its twin, by their kind.

    What is new of the embeddings stays zero; new heads and feed-forward rows compute something, as
    real ones do, and meet zeros. Query heads stay with the KV head that they had. Raises
    UsageError where the wide shape has less of something.
    """
    for shape in (small, wide):
        if min(asdict(shape).values()) < 1 or shape.n_heads % shape.n_kv_heads:
            raise UsageError(f"{shape}: no llama has it", "as many heads for each KV head")
    group, wide_group = small.n_heads // small.n_kv_heads, wide.n_heads // wide.n_kv_heads
    sizes = zip(asdict(small).values(), asdict(wide).values(), strict=True)
    if wide_group < group or any(many < few for few, many in sizes):
        raise UsageError(f"{wide} has less of something than {small}")
    head, within = np.divmod(np.arange(small.n_heads * small.head_size), small.head_size)
    heads = (head // group * wide_group + head % group) * wide.head_size + within
    kv_heads = np.arange(small.n_kv_heads * small.head_size)
    embedding, rows = np.arange(small.width), np.arange(small.n_ff)
    n_q, n_kv = wide.n_heads * wide.head_size, wide.n_kv_heads * wide.head_size
    keys = Place((n_kv, wide.width), kv_heads, embedding, is_noisy=True)
    gates = Place((wide.n_ff, wide.width), rows, embedding, is_noisy=True)
    words = Place((n_vocab, wide.width), np.arange(n_vocab), embedding)
    return {
        "attn_q": Place((n_q, wide.width), heads, embedding, is_noisy=True),
        "attn_k": keys,
        "attn_v": keys,
        "attn_output": Place((wide.width, n_q), embedding, heads),
        "ffn_gate": gates,
        "ffn_up": gates,
        "ffn_down": Place((wide.width, wide.n_ff), embedding, rows),
        "token_embd": words,
        "output": words,
    }


def write(reader: gguf.GGUFReader, path: Path, small: Shape, wide: Shape) -> None:
    """Write the twin of a model, a tensor at a time. Raises UsageError."""
    held = {tensor.name: tensor for tensor in reader.tensors}
    if "token_embd.weight" not in held:
        raise UsageError("the model has no token_embd.weight")
    where = places(small, wide, int(held["token_embd.weight"].shape[1]))
    names = [*held, *_new_names(held, small, wide)]
    if unknown := [name for name in names if _kind(name) not in (*where, *_NORMS)]:
        raise UsageError(f"the model has {unknown[0]}, which no twin can have")
    writer = gguf.GGUFWriter(path, "llama")
    _describe(reader, writer, small, wide)
    for name in names:
        size: tuple[int, ...] = (wide.width,)
        kind, n_bytes = None, 4
        if place := where.get(_kind(name)):
            size, kind, n_bytes = place.size, _BF16, 2
        writer.add_tensor_info(name, size, np.dtype(np.float32), n_bytes * prod(size), kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    noise: dict[tuple[int, int], Halves] = {}
    for name in names:
        tensor, place = held.get(name), where.get(_kind(name))
        weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type) if tensor else None
        if place is None:
            writer.write_tensor_data(_norm(weights, small, wide))
            continue
        if place.is_noisy and place.size not in noise:
            random = np.random.default_rng(1).standard_normal(place.size, np.float32)
            noise[place.size] = _halves(_NOISE * random)
        found = noise[place.size].copy() if place.is_noisy else np.zeros(place.size, np.uint16)
        if weights is not None:
            found[np.ix_(place.rows, place.columns)] = _halves(weights)
        writer.write_tensor_data(found)
    writer.close()


def _kind(name: str) -> str:
    """Return what a tensor is, by its name: blk.3.attn_q.weight is attn_q."""
    return name.removesuffix(".weight").rsplit(".", 1)[-1]


def _new_names(held: Any, small: Shape, wide: Shape) -> Iterator[str]:
    """Yield the tensors of layers that the model does not have: their norms are zero."""
    of_first = [name for name in held if name.startswith("blk.0.")]
    for layer in range(small.n_layers, wide.n_layers):
        yield from (f"blk.{layer}.{name.removeprefix('blk.0.')}" for name in of_first)


def _norm(weights: Weights | None, small: Shape, wide: Shape) -> Weights:
    """Return what the wide embeddings are multiplied by: the mean of squares has more zeros."""
    norm = np.zeros(wide.width, np.float32)
    if weights is not None:
        norm[: small.width] = weights * (small.width / wide.width) ** 0.5
    return norm


def _halves(weights: Weights) -> Halves:
    halves: Halves = gguf.quants.quantize(weights, _BF16).view(np.uint16)
    return halves


def _describe(reader: gguf.GGUFReader, writer: gguf.GGUFWriter, small: Shape, wide: Shape) -> None:
    """Copy what is said of a model, but for its shape."""
    changed = {key.format(arch="llama") for key in _CHANGED}
    for field in reader.fields.values():
        if field.name not in changed and not field.name.startswith("GGUF."):
            sub_type = field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type)
    epsilon = _value(reader, "llama.attention.layer_norm_rms_epsilon")
    writer.add_layer_norm_rms_eps(epsilon * small.width / wide.width)
    writer.add_embedding_length(wide.width)
    writer.add_feed_forward_length(wide.n_ff)
    writer.add_block_count(wide.n_layers)
    writer.add_head_count(wide.n_heads)
    writer.add_head_count_kv(wide.n_kv_heads)
    writer.add_key_length(wide.head_size)
    writer.add_value_length(wide.head_size)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)


if __name__ == "__main__":
    sys.exit(run(main))
