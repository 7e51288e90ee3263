"""The README's shell examples do what they say: each line is run by a real shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def examples() -> list[str]:
    _, _, after = README.read_text().partition("### In scripts")
    return after.split("```sh\n")[1].split("```")[0].splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `specli` is a command; later lines read what earlier ones wrote."""
    folder = tmp_path_factory.mktemp("shell")
    command = folder / "bin" / "specli"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m specli "$@"\n')
    command.chmod(0o755)
    python = folder / "bin" / "python3"
    python.symlink_to(sys.executable)
    return folder


@pytest.mark.real
def test_each_line_works(folder: Path) -> None:
    root = str(README.parent)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": root, "HF_HUB_OFFLINE": "1"}
    lines = examples()
    assert len(lines) >= 10
    for line in lines:
        done = subprocess.run(
            ["sh", "-c", line], cwd=folder, env=environment, capture_output=True, text=True
        )
        is_question = line.endswith("&& echo wet")  # a no ends it with 1
        assert done.returncode == 0 or (is_question and done.returncode == 1), (line, done.stderr)
        assert done.stderr == "", line
        assert (
            done.stdout.strip() or ">" in line or "-o " in line or "--output" in line or is_question
        )
    written = {file.name for file in folder.iterdir() if file.is_file() and file.stat().st_size}
    assert {"river.txt", "answer.md", "cat.txt", "dog.txt", "all.jsonl", "models.json"} <= written
    assert len((folder / "all.jsonl").read_text().splitlines()) == 2
