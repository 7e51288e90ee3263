"""What a shell gets when it asks how a line may go on."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("line", "wanted"),
    [("specli run --target qwen-coder-0", "qwen-coder-0.5b"), ("specli run --draft n", "ngram")],
)
def test_names_of_models_are_completed(line: str, wanted: str) -> None:
    environment = os.environ | {
        "_SPECLI_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    code = "import sys; sys.argv = ['specli']; from specli.__main__ import main; main()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert wanted in done.stdout.split()
    assert done.stderr == ""
