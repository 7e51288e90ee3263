"""Models for which llama.cpp ends the process: one line and an exit code come of it."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def damaged(tiny: Path, tmp_path: Path) -> Path:
    """A model that says that it has no layers, which llama.cpp asserts."""
    data = bytearray((tiny / "target.gguf").read_bytes())
    key = b"llama.block_count"
    at = data.index(key) + len(key) + 4  # behind the type of the value
    data[at : at + 4] = struct.pack("<I", 0)
    path = tmp_path / "damaged.gguf"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "command", [("run", "hi", "--offline", "-n", "3", "-t"), ("derive", "-o", "out.gguf")]
)
def test_what_llama_cpp_gives_up_on_is_one_line(
    damaged: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    words = [sys.executable, "-m", "specli", *command, str(damaged)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stdout == ""
    line, *rest = done.stderr.splitlines()
    assert line.startswith("error: llama.cpp gave up, on a damaged model or for lack of memory: ")
    assert "GGML_ASSERT" in line
    assert "/" not in line
    assert not rest
    assert [path.name for path in tmp_path.iterdir()] == ["damaged.gguf"]
