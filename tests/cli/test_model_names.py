"""What a shell gets when it asks how a line may go on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("specli run --target qwen-coder-0", "qwen-coder-0.5b"),
        ("specli run --draft n", "ngram none"),
        ("specli run --think ", "show hide off"),
        ("specli chat --resume ", "0123abcd"),
        ("specli chats show 01", "0123abcd"),
        ("specli config get temp", "temp"),
        ("specli config unset pairs.llama", "pairs.llama-8b.draft pairs.llama-8b.draft_tokens"),
        ("specli models info dem", "demo"),
    ],
)
def test_what_is_known_is_completed(tmp_path: Path, line: str, wanted: str) -> None:
    for kind, name, text in (
        ("data", "conversations/0123abcd.jsonl", '{"type": "conversation", "schema": 1}\n'),
        ("config", "config.toml", '[pairs.llama-8b]\ndraft = "none"\n'),
    ):
        path = tmp_path / kind / "specli" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    environment = os.environ | {
        "_SPECLI_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    code = "import sys; sys.argv = ['specli']; from specli.__main__ import main; main()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == wanted.split()
    assert done.stderr == ""
