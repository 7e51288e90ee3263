"""What only a process of its own shows: pipes that close, Ctrl-C, closed streams, imports."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SPECLI = [sys.executable, "-m", "specli"]


def run(tiny: Path, *args: str, **how: object) -> "subprocess.Popen[bytes]":
    command = [*SPECLI, "run", "hello", "-t", str(tiny / "target.gguf"), "--ctx", "0", *args]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(command, **(pipes | how))  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("args", [[], ["--json"]])
def test_a_reader_that_goes_away_ends_it_quietly(tiny: Path, args: list[str]) -> None:
    with run(tiny, "--temp", "1", *args) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(5)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    "stream", ["<&-", ">&-", "2>&-", ">&- 2>&- <&-", "--output answer >&- 2>&- <&-"]
)
def test_streams_that_are_closed_do_no_harm(tiny: Path, tmp_path: Path, stream: str) -> None:
    """But an answer that goes nowhere is a failure."""
    command = f"{sys.executable} -m specli run hello -t {tiny}/target.gguf -n 5 {stream}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, cwd=tmp_path)
    is_lost = stream.startswith(">&-")
    assert done.returncode == int(is_lost)
    assert b"Traceback" not in done.stderr
    assert (b"error: stdout cannot be written: " in done.stderr) == (stream == ">&-")
    assert bool(done.stdout or (tmp_path / "answer").exists()) == (not is_lost)


def test_the_program_has_one_name_however_it_was_started() -> None:
    command = [*SPECLI, "--show-completion", "bash"]
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert "complete -o default -F _specli_completion specli" in done.stdout, done


@pytest.mark.parametrize("where", [">&-", ">/dev/full"])
def test_what_is_printed_at_once_and_goes_nowhere_is_a_failure(where: str) -> None:
    command = f"{sys.executable} -m specli --version {where}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == 1
    said = "stdout cannot be written: it is closed" if where == ">&-" else "No space left on device"
    assert done.stderr == f"error: {said}\n"


def test_ctrl_c_stops_the_answer_with_statistics_and_130(tiny: Path) -> None:
    sampling = ("--temp", "1", "--top-k", "0", "--top-p", "1", "--min-p", "0")
    with run(tiny, *sampling, "-k", "4") as process:  # auto might find nothing to guess in time
        assert process.stdout
        assert process.stderr
        process.stdout.read(20)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"tokens/round" in err
    assert err.count(b"\n") == 1


@pytest.mark.parametrize("delay", ["0.05", "0.3"])
def test_ctrl_c_at_any_time_leaves_no_traceback_of_ours(tiny: Path, delay: str) -> None:
    """Before specli is reached, while Python itself starts, nobody can do anything about it."""
    with run(tiny, "--temp", "1") as process:
        subprocess.run(["sleep", delay], check=True)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    if b"Traceback" in err:
        assert b"specli/" not in err
    else:
        assert process.returncode in (0, 130, -signal.SIGINT)  # 0: the answer was there already


@pytest.mark.parametrize("line", ["raise KeyboardInterrupt", "sys.exit(3)"])
def test_ctrl_c_when_all_is_over_leaves_no_traceback(line: str) -> None:
    """As the command ends, and once more as the process does."""
    code = (
        "import os, signal, sys\n"
        "import specli.cli.app\n"
        "from specli.__main__ import main\n"
        "def run():\n"
        "    ignore = signal.signal\n"
        "    def pressed(number, handler):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        return ignore(number, handler)\n"
        "    signal.signal = pressed\n"
        f"    {line}\n"
        "specli.cli.app.main = run\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20)
    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["--version"],
        ["run", "--help"],
        ["doctor", "--help"],
        ["models", "pull", "--help"],
    ],
)
def test_help_needs_no_heavy_imports(args: list[str]) -> None:
    code = (
        "import sys\nfrom specli.cli.app import main\n"
        f"sys.argv = ['specli', *{args}]\n"
        "try:\n    main()\nfinally:\n"
        "    heavy = {'llama_cpp', 'huggingface_hub', 'numpy', 'prompt_toolkit'} & {*sys.modules}\n"
        "    assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_locale_without_utf_8_still_pipes_utf_8(tiny: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    with run(tiny, "-n", "200", "--temp", "3", env=environment) as process:
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out.decode("utf-8")


@pytest.mark.parametrize("where", [">/dev/full", "2>/dev/full"])
def test_a_full_disk_behind_a_stream(tiny: Path, where: str) -> None:
    command = f"{sys.executable} -m specli run hello -t {tiny}/target.gguf -n 5 {where}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    if where == "2>/dev/full":  # that nobody can read the statistics is no failure
        assert done.returncode == 0
        assert done.stdout
    else:
        assert done.returncode == 1
        assert done.stderr.startswith("error: stdout cannot be written: No space left on device")


def test_a_conversation_with_a_program(tiny: Path) -> None:
    """Each line is answered before the next has to be sent."""
    command = [*SPECLI, "chat", "-t", str(tiny / "target.gguf"), "-n", "5", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        for _ in range(3):
            process.stdin.write(b"hello\xe2\x80\xa8there\x0c\r\n")
            process.stdin.flush()
            while b'"done"' not in (line := process.stdout.readline()):
                assert line
        process.stdin.close()
    assert process.returncode == 0
