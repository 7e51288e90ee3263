"""A model in a larger shape computes what it computed."""

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from scripts.cost_twin import Shape, places, shape_of, write
from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.model import LlamaModel
from specli.engine.types import Rows
from specli.errors import UsageError
from tests.tiny_gguf import write_hybrid, write_llama

WIDE = Shape(width=192, n_ff=320, n_layers=4, n_heads=12, n_kv_heads=4, head_size=16)


def logits(path: Path) -> Rows:
    with LlamaModel(path) as model, LlamaContext(model, ContextSettings(64, 8, 1)) as context:
        return context.decode([1, 40, 60, 80, 300, 12, 40, 99], 8).copy()


def test_a_twin_has_another_shape_and_the_same_logits(tmp_path: Path) -> None:
    small, twin = write_llama(tmp_path / "small.gguf"), tmp_path / "twin.gguf"
    reader = gguf.GGUFReader(small)
    write(reader, twin, shape_of(reader), WIDE)
    assert shape_of(gguf.GGUFReader(twin)) == WIDE
    a, b = logits(small), logits(twin)
    assert a.std() > 1.0
    assert np.abs(a - b).max() < 0.1  # weights of 8 bits of precision
    with LlamaModel(small) as one, LlamaModel(twin) as other:
        assert one.vocabulary.tokenize("the end") == other.vocabulary.tokenize("the end")


def test_what_has_no_twin(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="llama is wanted"):
        shape_of(gguf.GGUFReader(write_hybrid(tmp_path / "jamba.gguf")))
    small = shape_of(gguf.GGUFReader(write_llama(tmp_path / "small.gguf")))
    with pytest.raises(UsageError, match="less of something"):
        places(WIDE, small, 320)
    for n_kv_heads in (0, 5):
        with pytest.raises(UsageError, match="no llama has it"):
            places(small, replace(WIDE, n_kv_heads=n_kv_heads), 320)
