"""Drafts in four bits: what the copy holds, and where none is made."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type

from specli import loaded
from specli.assemble import Pair, open_session, start_of
from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.model import LlamaModel, go_on
from specli.backend.quantize import quantize
from specli.engine.types import Row
from specli.errors import Interrupted, ModelError
from specli.loaded import load_draft, load_models
from specli.models.header import read_header
from specli.models.store import Located
from specli.requantized import in_four_bits
from specli.settings import Settings
from tests import tiny_gguf

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files in memory are Linux's")


def in_bits(folder: Path, bits: int, **options: int) -> Path:
    """Write a tiny model in so many bits."""
    source = tiny_gguf.write_llama(folder / "source.gguf", **options)  # type: ignore[arg-type]
    place = folder / f"{bits}-bits.gguf"
    quantize(source, place, bits, lambda number, n_tensors: None)
    return place


@pytest.fixture
def eight_bits(tmp_path: Path) -> Path:
    return in_bits(tmp_path, 8)


def rewritten(source: Path, place: Path, changed: dict[str, Type], tied: bool = False) -> Path:
    """Write a model again, some tensors in other types; tied: without an output layer."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(place, "llama")
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            kind, sub = field.types[0], field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(field.name, field.contents(), kind, sub)
    for tensor in reader.tensors:
        if tied and tensor.name == "output.weight":
            continue
        kind = changed.get(tensor.name, tensor.tensor_type)
        data = gguf.dequantize(tensor.data, tensor.tensor_type)
        data = gguf.quantize(data, kind) if kind != tensor.tensor_type else tensor.data
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return place


def types(path: Path) -> dict[str, Type]:
    return {tensor.name: Type(tensor.type) for tensor in read_header(path).tensors}


@pytest.mark.parametrize("kind", [Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0])
def test_matrices_become_q4_0_and_all_else_stays(tmp_path: Path, kind: Type) -> None:
    source = tiny_gguf.write_llama(tmp_path / "source.gguf", n_vocab=333)
    matrices = {name: kind for name in types(source) if "norm" not in name}
    model = rewritten(source, tmp_path / "model.gguf", matrices)
    with in_four_bits(model, 2, go_on) as copy:
        assert copy
        before, after = gguf.GGUFReader(model), gguf.GGUFReader(copy)
        assert [*before.fields] == [*after.fields]
        for was, tensor in zip(before.tensors, after.tensors, strict=True):
            assert (was.name, [*was.shape]) == (tensor.name, [*tensor.shape])
            if was.name in matrices and was.name != "token_embd.weight":
                assert tensor.tensor_type == Type.Q4_0
                expected = gguf.quantize(gguf.dequantize(was.data, kind), Type.Q4_0)
                found = [gguf.dequantize(data, Type.Q4_0) for data in (tensor.data, expected)]
                assert np.array_equal(*found)
            else:
                assert tensor.tensor_type == was.tensor_type
                assert np.array_equal(tensor.data, was.data)


def test_what_is_larger_than_a_piece_is_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specli.requantized._N_AT_ONCE", 512)
    monkeypatch.setattr("specli.requantized._BYTES_AT_ONCE", 100)
    test_matrices_become_q4_0_and_all_else_stays(tmp_path, Type.Q8_0)


@pytest.mark.parametrize("kind", [Type.F16, Type.BF16, Type.Q8_0])
@pytest.mark.parametrize("tied", [False, True])
def test_of_a_model_that_is_not_quantized_only_the_output_layer(
    tmp_path: Path, kind: Type, tied: bool
) -> None:
    source = tiny_gguf.write_llama(tmp_path / "source.gguf")
    output = "token_embd.weight" if tied else "output.weight"
    model = rewritten(source, tmp_path / "model.gguf", {output: kind}, tied)
    with in_four_bits(model, 1, go_on) as copy:
        assert copy
        was = types(model)
        assert types(copy) == was | {output: Type.Q4_0}


def logits(model: LlamaModel) -> Row:
    with LlamaContext(model, ContextSettings(64, 1, 1)) as context:
        return np.array(context.decode([1, 70, 80, 90], 1)[0])


def test_a_draft_in_four_bits_is_much_the_same_and_smaller(eight_bits: Path) -> None:
    settings = Settings(n_threads=1)
    as_it_is = replace(settings, requantize_draft=False)
    with load_draft(eight_bits, settings) as small, load_draft(eight_bits, as_it_is) as large:
        assert small.path == large.path == eight_bits
        assert small.size_bytes < 0.75 * large.size_bytes
        assert 0.9 < np.corrcoef(logits(small), logits(large))[0, 1] < 0.9999


def cut(path: Path) -> Path:
    place = path.with_name("cut.gguf")
    place.write_bytes(path.read_bytes()[:-1000])
    return place


def garbled(path: Path) -> Path:
    """Return a model of which a tensor begins behind its end."""
    data = bytearray(path.read_bytes())
    at = data.index(b"output.weight") + len(b"output.weight") + 4 + 16 + 4
    data[at : at + 8] = b"\xff" * 8
    place = path.with_name("garbled.gguf")
    place.write_bytes(data)
    return place


def of_type(path: Path, name: bytes, kind: Type) -> Path:
    """Return a model in which a tensor says that it is of another type."""
    data = bytearray(path.read_bytes())
    at = data.index(name) + len(name) + 4 + 16
    data[at : at + 4] = int(kind).to_bytes(4, "little")
    place = path.with_name("other-type.gguf")
    place.write_bytes(data)
    return place


def mistyped(path: Path) -> Path:
    return of_type(path, b"blk.0.ffn_up.weight", Type.Q5_0)


def mistyped_output(path: Path) -> Path:
    """Whose rows of 64 cannot be blocks of 256."""
    return of_type(path, b"output.weight", Type.Q6_K)


def moved(path: Path) -> Path:
    """Return a model whose weights all begin 32 bytes later than they should."""
    data = bytearray(path.read_bytes())
    header = read_header(path)
    at = header.tensors_at
    for tensor in header.tensors:
        at += 8 + len(tensor.name) + 4 + 8 * len(tensor.shape) + 4
        data[at : at + 8] = (tensor.offset + 32).to_bytes(8, "little")
        at += 8
    place = path.with_name("moved.gguf")
    place.write_bytes(data + bytes(32))
    return place


def split(path: Path) -> Path:
    place = path.with_name("model-00001-of-00002.gguf")
    path.rename(place)
    (path.with_name("model-00002-of-00002.gguf")).write_bytes(b"GGUF")
    return place


@pytest.mark.parametrize("wrong", [cut, garbled, mistyped, mistyped_output, moved])
def test_what_is_damaged_fails_as_it_would_without_a_copy(
    eight_bits: Path, wrong: Callable[[Path], Path]
) -> None:
    said = []
    for requantize_draft in (True, False):
        with pytest.raises(ModelError) as error:
            load_draft(wrong(eight_bits), Settings(requantize_draft=requantize_draft))
        said.append(str(error.value))
    assert said[0] == said[1]


def test_there_is_none_of_what_is_split(eight_bits: Path) -> None:
    with in_four_bits(split(eight_bits), 1, go_on) as copy:
        assert copy is None


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("can't start new thread"), AttributeError("undefined symbol")],
)
def test_there_is_none_where_there_is_no_room_or_no_ggml(
    eight_bits: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("specli.requantized.in_q4_0", fail)
    before = n_open()
    with in_four_bits(eight_bits, 2, go_on) as copy:
        assert copy is None
    assert n_open() == before


@pytest.mark.parametrize("all_quantized", [True, False])  # and with that the last tensor
def test_what_lies_behind_the_weights_is_not_copied(
    tmp_path: Path, eight_bits: Path, all_quantized: bool
) -> None:
    """Nobody needs gigabytes of nothing in memory; llama.cpp looks past them."""
    output = {"output.weight": Type.Q8_0}
    some = rewritten(tmp_path / "source.gguf", tmp_path / "some.gguf", output)
    model = eight_bits if all_quantized else some
    os.truncate(model, 1 << 30)
    with in_four_bits(model, 1, go_on) as copy:
        assert (copy is not None) == all_quantized
        assert copy is None or copy.stat().st_size < 1 << 20
    load_draft(model, Settings()).close()


@pytest.mark.parametrize("bits", [4, None])
def test_there_is_none_of_what_would_stay_as_it_is(tmp_path: Path, bits: int | None) -> None:
    source = tiny_gguf.write_llama(tmp_path / "source.gguf")
    model = in_bits(tmp_path, bits) if bits else source
    with in_four_bits(model, 1, go_on) as copy:
        assert copy is None


def test_there_is_none_where_memory_holds_no_files(
    eight_bits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with in_four_bits(eight_bits, 1, go_on) as copy:
        assert copy is None


def n_open() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_it_is_broken_off_and_nothing_stays_open(eight_bits: Path) -> None:
    before, told = n_open(), list[float]()

    def stop(share: float) -> bool:
        told.append(share)
        return len(told) < 3

    with pytest.raises(Interrupted), in_four_bits(eight_bits, 2, stop):
        pass
    assert len(told) == 3
    assert n_open() == before


def loads_as_it_is(path: Path, settings: Settings) -> bool:
    told: list[float] = []

    def on_load(share: float) -> bool:
        told.append(share)
        return True

    with load_draft(path, settings, on_load) as model:
        assert told == sorted(told)
        with LlamaModel(path) as other:
            return model.size_bytes == other.size_bytes


@pytest.mark.parametrize(
    ("settings", "gpu_bytes", "as_it_is"),
    [
        (Settings(), 0, False),
        (Settings(), 1 << 30, True),
        (Settings(draft_n_gpu_layers=0), 1 << 30, False),
        (Settings(requantize_draft=False), 0, True),
    ],
)
def test_where_a_gpu_decodes_or_it_is_not_wanted_a_draft_stays_as_it_is(
    eight_bits: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    gpu_bytes: int,
    as_it_is: bool,
) -> None:
    monkeypatch.setattr(loaded, "gpu_free_bytes", lambda: gpu_bytes)
    assert loads_as_it_is(eight_bits, settings) == as_it_is


def test_a_copy_that_cannot_be_loaded_is_done_without(
    eight_bits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def no_model(*_: object) -> Iterator[Path]:
        yield eight_bits.with_name("nowhere")

    monkeypatch.setattr(loaded, "in_four_bits", no_model)
    assert loads_as_it_is(eight_bits, Settings())


@pytest.mark.parametrize("draft", ["q8_0", "f32", "ngram"])
def test_the_start_of_answers_says_whether_it_was_done(
    tiny: Path, eight_bits: Path, draft: str
) -> None:
    files = {"q8_0": eight_bits, "f32": tiny / "draft.gguf"}
    guesser = Located("d", files[draft]) if draft in files else draft
    settings = Settings(n_ctx=64, n_threads=1, k=2)
    with open_session(Pair(Located("t", tiny / "target.gguf"), guesser), settings) as session:
        assert start_of(session, settings).requantized == (draft == "q8_0")


@pytest.mark.parametrize(("free_bytes", "is_smaller"), [(1 << 40, True), (1 << 18, False)])
def test_no_copy_is_made_where_memory_is_short(
    tiny: Path,
    eight_bits: Path,
    monkeypatch: pytest.MonkeyPatch,
    free_bytes: int,
    is_smaller: bool,
) -> None:
    monkeypatch.setattr(loaded, "memory_free_bytes", lambda: free_bytes)
    target, draft = Located("t", tiny / "target.gguf"), Located("d", eight_bits)
    settings = Settings(n_ctx=64, n_threads=1, force=True)
    with load_models(target, [draft], settings, 4) as models, LlamaModel(eight_bits) as whole:
        assert (models.drafts[eight_bits].size_bytes < whole.size_bytes) == is_smaller
