"""Files, vocabularies and tokens of GGUF models."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from specli.backend.model import LlamaModel
from specli.errors import ModelError
from tests import tiny_gguf


def test_text_survives_the_tokens(tiny: Path) -> None:
    text = "Hello, wörld 🙂\n\tend"
    with LlamaModel(tiny / "no_bos.gguf") as model:
        vocabulary = model.vocabulary
        tokens = vocabulary.tokenize(text)
        assert b"".join(vocabulary.piece(token) for token in tokens).decode() == text


def test_there_is_exactly_one_bos(tiny: Path) -> None:
    with LlamaModel(tiny / "target.gguf") as model:
        vocabulary = model.vocabulary
        spelt = vocabulary.text(vocabulary.bos).decode()
        for text in ("abc", spelt + "abc"):
            tokens = vocabulary.tokenize(text)
            assert tokens.count(vocabulary.bos) == 1
            assert tokens[0] == vocabulary.bos
        assert vocabulary.tokenize("") == [vocabulary.bos]
    with LlamaModel(tiny / "no_bos.gguf") as model:
        assert model.vocabulary.bos not in model.vocabulary.tokenize("abc")


def test_special_tokens_end_a_generation_and_have_no_text(tiny: Path) -> None:
    with LlamaModel(tiny / "target.gguf") as model:
        assert model.vocabulary.eog == {tiny_gguf.EOS, tiny_gguf.IM_END}
        assert model.vocabulary.piece(tiny_gguf.IM_END) == b""
        assert model.vocabulary.text(10**6) == b""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        (b"", "is empty"),
        (b"PK\x03\x04 a zip", r"is not a GGUF file (it begins with 'PK\x03\x04')"),
        (b"GGUF", "cannot load this model"),
        (b"GGUF" + bytes(range(256)) * 9, "cannot load this model"),
    ],
)
def test_what_is_no_model_is_said_in_one_line(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=re.escape(said)) as raised:
        LlamaModel(path)
    assert "\n" not in raised.value.message


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.999])
def test_a_truncated_model_is_refused(tiny: Path, tmp_path: Path, share: float) -> None:
    data = (tiny / "target.gguf").read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ModelError, match="cannot load this model"):
        LlamaModel(path)


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is a directory"):
        LlamaModel(tmp_path)


@pytest.mark.parametrize("first", ["numpy", "llama_cpp"])
def test_the_order_of_imports_does_not_matter(tiny: Path, first: str) -> None:
    """A C++ runtime that some numpy wheels bring along has crashed llama.cpp's tokenizer."""
    script = (
        f"import {first}; from pathlib import Path\n"
        "from specli.backend.model import LlamaModel\n"
        f"with LlamaModel(Path({str(tiny / 'target.gguf')!r})) as model:\n"
        "    print(len(model.vocabulary.tokenize('some words')))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1
    assert done.stderr == ""
