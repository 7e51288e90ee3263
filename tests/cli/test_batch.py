"""run --batch: results in order, what fails, and what is left to do after a break."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specli.cli.batch_file import open_results
from specli.errors import SpecliError, UsageError
from tests.cli.conftest import Result, files_of

Specli = Callable[..., Result]
GREEDY = ("--temp", 0, "--threads", 1, "-n", 8)
LINES = [
    {"id": "a", "prompt": "hello"},
    {"prompt": "hello", "max_tokens": 3, "label": "of no use to us"},
    {"id": 7, "messages": [{"role": "user", "content": "hello"}], "system": "Be brief."},
]


def jsonl(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def results(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n")[:-1]]


def test_answers_come_in_order_as_single_runs_give_them(specli: Specli, tiny: Path) -> None:
    args = ("-t", tiny / "target.gguf", "-d", tiny / "draft.gguf", *GREEDY)
    done = specli("run", "--batch", "-", *args, stdin=jsonl(LINES))
    assert (done.code, done.err) == (0, "")
    first, second, third = results(done.out)
    assert [first["id"], second["id"], third["id"]] == ["a", 2, 7]
    assert first["text"] == specli("run", "hello", *args).out
    assert third["text"] == specli("run", "hello", "--system", "Be brief.", *args).out
    assert [first["reason"], second["stats"]["predicted_n"]] == ["length", 3]


def test_what_fails_is_a_result_and_the_rest_goes_on(
    specli: Specli, tiny: Path, tmp_path: Path
) -> None:
    bad = [
        [1],
        {"id": "none"},
        {"prompt": 3},
        {"prompt": "x", "max_tokens": "many"},
        {"messages": [{"role": "robot", "content": "x"}]},
        {"prompt": "\ud800"},
        {"id": "long", "prompt": "word " * 200},
    ]
    data = b"{torn\n\n" + jsonl([*bad, LINES[0]])
    (tmp_path / "in.jsonl").write_bytes(data)
    args = ("-t", tiny / "target.gguf", "--ctx", 128, *GREEDY)
    done = specli("run", "--batch", tmp_path / "in.jsonl", *args)
    assert done.code == 1
    assert done.err.startswith("error: 8 of 9 prompts failed")
    *failed, good = results(done.out)
    said = [result["error"] for result in failed]
    wanted = ["line 1 is not valid JSON", "line 3 is no object", "either prompt or messages"]
    wanted += ["prompt is 3, a text", "max_tokens is 'many'", "the role of message 1"]
    wanted += ["is not valid UTF-8", "the context holds 128"]
    assert all(part in text for part, text in zip(wanted, said, strict=True)), said
    assert (failed[-1]["id"], good["id"]) == ("long", "a")
    assert good["text"]


def test_resume_does_what_is_missing_and_mends_a_torn_line(
    specli: Specli, tiny: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"
    args = ("--batch", "-", "-o", output, "-t", tiny / "target.gguf", *GREEDY)
    assert specli("run", *args, stdin=jsonl(LINES)).out == ""
    whole = output.read_text()
    first = whole.split("\n")[0] + "\n"
    for left in (first, first + '{"id": 2, "te', "", whole):
        output.write_text(left)
        done = specli("run", *args, "--resume", stdin=jsonl(LINES))
        assert done.code == 0
        assert output.read_text().startswith(left[: left.rfind("\n") + 1])
        texts = [(result["id"], result["text"]) for result in results(output.read_text())]
        assert texts == [(result["id"], result["text"]) for result in results(whole)]
    again = specli("run", *args, stdin=jsonl(LINES))
    assert again.code == 2
    assert "exists already" in again.err
    others = specli("run", *args, "--resume", stdin=jsonl(LINES[1:]))
    assert others.code == 2
    assert "line 1 is no result of this batch" in others.err


@pytest.mark.parametrize("line", [{"id": "a"}, {"id": "a", "text": 5}, LINES[0]])
def test_what_has_an_id_but_no_answer_is_no_result(
    specli: Specli, tiny: Path, tmp_path: Path, line: dict[str, object]
) -> None:
    output = tmp_path / "out.jsonl"
    output.write_bytes(jsonl([line]))
    args = ("--batch", "-", "-o", output, "-t", tiny / "target.gguf", "--resume", *GREEDY)
    done = specli("run", *args, stdin=jsonl(LINES))
    assert done.code == 2
    assert "line 1 is no result of this batch" in done.err
    assert output.read_bytes() == jsonl([line])


def test_a_kill_loses_only_the_running_prompt(tiny: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    lines = jsonl([{"prompt": f"hello {i}"} for i in range(2000)])
    (tmp_path / "in.jsonl").write_bytes(lines)
    command = [sys.executable, "-m", "specli", "run", "--batch", str(tmp_path / "in.jsonl")]
    command += ["-o", str(output), "-t", str(tiny / "target.gguf"), "-d", "none", "-n", "20"]
    for end in (signal.SIGKILL, signal.SIGINT):
        n_before = output.read_bytes().count(b"\n") if output.exists() else 0
        with subprocess.Popen([*command, "--resume"], stderr=subprocess.PIPE) as process:
            for _ in range(400):
                time.sleep(0.05)
                if output.exists() and output.read_bytes().count(b"\n") > n_before + 2:
                    break
            process.send_signal(end)
            _, err = process.communicate(timeout=20)
        assert process.returncode == (-9 if end == signal.SIGKILL else 130)
        whole = output.read_text()[: output.read_text().rfind("\n") + 1]
        assert [result["id"] for result in results(whole)] == [*range(1, whole.count("\n") + 1)]
        assert whole.count("\n") > n_before + 2
    said = f"warning: {whole.count(chr(10))} of 2000 prompts are answered; --resume goes on\n"
    assert said.encode() in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--batch", "none.jsonl"], "none.jsonl cannot be read"),
        (["--batch", "/dev/zero"], "/dev/zero: is larger than 50 MB"),
        (["hi", "--file", "/dev/zero"], "/dev/zero: is larger than 50 MB"),
        (["--batch", "-"], "there is no prompt in it"),
        (["hello", "--batch", "-"], "cannot have a prompt beside it"),
        (["--batch", "-", "--trace", "x.html"], "hint: a page shows the rounds of one answer"),
        (["--batch", "-", "--resume"], "--resume goes on in a file"),
        (["hello", "--resume"], "--resume is for --batch"),
        (["--batch", "-", "--show-drafts"], "--batch cannot have --show-drafts beside it"),
        (["--batch", "-", "--think", "show"], "--batch cannot have --think show beside it"),
    ],
)
def test_what_is_no_batch_is_exit_2(specli: Specli, args: list[str], said: str) -> None:
    stdin = jsonl(LINES) if "--resume" in args else b"\n"
    done = specli("run", "-t", "missing.gguf", *args, stdin=stdin)
    assert done.code == 2
    assert said in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="files are locked on Unix only")
def test_results_have_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with open_results(path, False, ["a", "b"]) as first:
        first.add({"id": "a", "text": "x"})
        with pytest.raises(UsageError, match="another specli"), open_results(path, True, ["a"]):
            pass
        first.add({"id": "b", "text": "y"})
    assert [line["id"] for line in results(path.read_text())] == ["a", "b"]


def test_deep_json_is_no_result(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("[" * 100_000 + "\n")
    with pytest.raises(UsageError, match="no result"), open_results(path, True, ["a"]):
        pass


def test_an_end_that_is_no_result_is_not_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("precious")
    with pytest.raises(UsageError, match="its end"), open_results(path, True, ["a"]):
        pass
    assert path.read_text() == "precious"


def test_ids_that_are_no_json_and_ids_of_several(specli: Specli, tiny: Path) -> None:
    lines = (
        *(b'{"id": NaN, "prompt": "x"}', b'{"id": [1e999], "prompt": "x"}'),
        *(b'{"id": "\\ud800", "prompt": "x"}', b'{"id": "\\ud83d\\ude42", "prompt": "x"}'),
        *(b'{"id": "a", "prompt": "x"}', b'{"id": "a", "prompt": "x"}'),
    )
    args = ("-t", tiny / "target.gguf", "-d", "none", *GREEDY, "--json")
    done = specli("run", "--batch", "-", *args, stdin=b"\n".join(lines))
    assert done.code == 1
    assert 'warning: --batch: several lines have the id "a"; order tells which' in done.err
    found = [json.loads(line, parse_constant=pytest.fail) for line in done.out.splitlines()]
    assert [one["id"] for one in found] == [1, 2, 3, "🙂", "a", "a"]
    assert ["cannot be written as JSON" in str(one) for one in found[:4]] == [True] * 3 + [False]


def test_a_full_disk_is_said_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with (
        files_of(20),
        pytest.raises(SpecliError, match=str(path)),
        open_results(path, False, [1]) as whole,
    ):
        whole.add({"id": 1, "text": "x" * 40})
