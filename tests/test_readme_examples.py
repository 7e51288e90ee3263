"""The README's shell examples do what they say: each line is run by a real shell."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def examples() -> list[str]:
    _, _, after = README.read_text().partition("### In scripts")
    return after.split("```sh\n")[1].split("```")[0].splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `specli` is a command."""
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
    # With a fixed number of guesses, nothing has to be measured at each start.
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "specli" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[pairs."demo"]\ndraft = "ngram"\ndraft_tokens = 2\n')
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(README.parent)}
    environment["SPECLI_THREADS"] = "1"  # two lines run side by side, and they are not alone

    def run(line: str) -> None:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        asks = line.endswith("&& echo wet")  # a no ends it with 1
        assert done.returncode in ((0, 1) if asks else (0,)), (line, done.stderr)
        assert done.stderr == "", line
        assert done.stdout.strip() or asks or ">" in line or "-o" in line, line

    first, *others = examples()
    assert len(others) >= 9
    run(first)  # writes what the others read
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, others))
    written = {file.name for file in folder.iterdir() if file.is_file() and file.stat().st_size}
    wanted = {"river.txt", "answer.md", "cat.txt", "river.txt.md", "all.jsonl", "models.json"}
    assert wanted <= written
    assert len((folder / "all.jsonl").read_text().splitlines()) == 2
