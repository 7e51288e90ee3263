"""llama.cpp's own tool: what it prints is read, and what goes wrong with it is said."""

from pathlib import Path

import pytest

from specli.bench.peer import (
    PeerRun,
    PeerSettings,
    parse_peer,
    peer_command,
    peer_version,
    run_peer,
)
from specli.errors import Interrupted, ModelError

OUTPUT = """\
Read 183 bytes from binary file prompt.txt
0.04.276.920 I cmn          init: llama threadpool init, n_threads = 2

<|im_start|>assistant
decoded    7 tokens in    1.000 seconds, speed: and other lies of an answer

0.09.695.875 I encoded   39 tokens in    1.209 seconds, speed:   32.259 t/s
0.09.695.926 I decoded   35 tokens in    2.691 seconds, speed:   13.006 t/s
0.09.695.970 I
0.09.696.012 I n_draft   = 3
0.09.696.056 I n_predict = 35
0.09.696.100 I n_drafted = 26
0.09.696.142 I n_accept  = 25
0.09.696.188 I accept    = 96.154%
"""


def tool(tmp_path: Path, script: str) -> Path:
    path = tmp_path / "tool"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_last_of_what_it_prints_is_read() -> None:
    assert parse_peer(OUTPUT) == PeerRun(39, 35, 2.691, 26, 25)


@pytest.mark.parametrize("lost", ["encoded", "decoded   35", "n_accept"])
def test_output_that_lacks_something_is_an_error(lost: str) -> None:
    output = OUTPUT.replace("decoded    7", "").replace(lost, "")
    with pytest.raises(ModelError, match="did not say"):
        parse_peer(output)


def test_the_command_switches_all_filters_off() -> None:
    files = (Path("a"), Path("b"), Path("p"))
    command = peer_command(
        Path("tool"),
        *files,
        PeerSettings(8, 0.5),
        temperature=1.0,
        seed=3,
        n_tokens=200,
        n_ctx=4096,
        n_threads=2,
    )
    line = " ".join(command)
    assert line.startswith("tool -m a -md b -bf p --no-escape -n 199 -c 4096 -t 2")
    assert "--samplers temperature --temp 1 --seed 3" in line
    assert line.endswith("--spec-draft-n-max 8 --spec-draft-p-min 0.5")


def test_it_is_run(tmp_path: Path) -> None:
    (tmp_path / "said").write_text(OUTPUT)
    assert run_peer([str(tool(tmp_path, f"cat {tmp_path}/said >&2"))]).tokens == 35
    assert peer_version(tool(tmp_path, "echo 'version: 0.5 (build 1)'")) == "0.5 (build 1)"


def test_failures_are_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"failed \(3\): no such model"):
        run_peer([str(tool(tmp_path, "echo no such model; exit 3"))])
    with pytest.raises(ModelError, match="cannot be run: No such file"):
        run_peer([str(tmp_path / "none")])
    with pytest.raises(Interrupted):
        run_peer([str(tool(tmp_path, "kill -INT $$"))])
