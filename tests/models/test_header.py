"""GGUF headers: read right, and refused where they are wrong."""

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specli.errors import ModelError
from specli.models.header import (
    TruncatedError,
    architecture_of,
    file_bytes,
    is_part,
    parse_header,
    read_header,
)
from tests import tiny_gguf


def test_a_header_says_what_the_writer_wrote(tiny: Path) -> None:
    header = read_header(tiny / "target.gguf")
    assert header.architecture == architecture_of(tiny / "target.gguf") == "llama"
    assert header.of_architecture("block_count") == 2
    assert len(header.values["tokenizer.ggml.tokens"]) == 320
    assert header.values["tokenizer.ggml.bos_token_id"] == tiny_gguf.BOS
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    assert shapes["token_embd.weight"][1] == 320
    assert header.n_params > 50_000


def test_a_prefix_of_a_header_asks_for_more(tiny: Path) -> None:
    data = (tiny / "target.gguf").read_bytes()
    end = parse_header(data).size_bytes
    for n in range(0, end, 97):
        with pytest.raises(TruncatedError):
            parse_header(data[:n])
    assert parse_header(data[:end]).size_bytes == end


@given(st.binary(max_size=200))
def test_nonsense_is_refused_and_nothing_worse(data: bytes) -> None:
    with pytest.raises(ModelError):
        parse_header(b"GGUF" + struct.pack("<I", 3) + data)


def test_flipped_bytes_are_refused_or_harmless(tiny: Path) -> None:
    data = bytearray((tiny / "target.gguf").read_bytes()[:20_000])
    for at in range(0, 2000, 7):
        flipped = bytearray(data)
        flipped[at] ^= 0xFF
        with suppress(ModelError):  # and nothing else
            assert parse_header(bytes(flipped)).values


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"PK\x03\x04" * 9, "not a GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "GGUF version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "makes no sense"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=said) as raised:
        read_header(path)
    assert str(path) in raised.value.message
    assert architecture_of(path) == ""


def test_the_size_of_a_split_model_is_that_of_its_parts(tmp_path: Path) -> None:
    for i, size in ((1, 10), (2, 20), (3, 30)):
        (tmp_path / f"m[x]-0000{i}-of-00003.gguf").write_bytes(b"x" * size)
    (tmp_path / "m-00001-of-00002.gguf").write_bytes(b"xxx")
    assert file_bytes(tmp_path / "m[x]-00001-of-00003.gguf") == 60
    assert file_bytes(tmp_path / "m-00001-of-00002.gguf") == 3


def test_every_part_of_a_model_is_a_part_of_it_by_whatever_name(tmp_path: Path) -> None:
    first, second = (tmp_path / f"m-0000{i}-of-00002.gguf" for i in (1, 2))
    for path in (first, second):
        path.write_bytes(b"x")
    link = tmp_path / "link"
    link.symlink_to(second)
    assert is_part(first, first)
    assert is_part(link, first)
    assert not is_part(first, second)  # by which nobody names it
    assert not is_part(tmp_path / "none", first)
    assert file_bytes(tmp_path / "missing.gguf") == 0
