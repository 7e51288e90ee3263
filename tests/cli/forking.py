"""The other end of zygote.py: begins processes there, with files or a terminal for streams."""

import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pexpect.fdpexpect import fdspawn

SPECLI = "from specli.__main__ import main; main()"
# All that a conversation needs. Not more: llama.cpp itself must not have begun before a fork.
_CHAT = """
import ctypes
from contextlib import suppress
with suppress(OSError):
    ctypes.CDLL("libstdc++.so.6", mode=ctypes.RTLD_GLOBAL)  # as specli does, and why, too
import llama_cpp, jinja2.sandbox, platformdirs, prompt_toolkit.shortcuts, pygments.lexers
import specli.__main__, specli.cli.app, specli.cli.commands, specli.cli.completion
import specli.cli.current, specli.cli.live, specli.cli.talk, specli.cli.typesetting
"""
NOT_UTF_8 = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@dataclass(frozen=True, slots=True)
class Call:
    """A program and what it gets. streams: the paths of stdin, stdout and stderr."""

    code: str
    args: tuple[str, ...]
    environment: Mapping[str, str]
    streams: tuple[str, str, str]
    folder: str = "."
    file_limit: int = 0


class Zygote:
    """A process that others are forked from."""

    def __init__(self, warm_up: str, environment: Mapping[str, str]) -> None:
        calls, ours = os.pipe()
        answers, theirs = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.zygote", str(calls), str(theirs)],
            env={**environment, "WARM_UP": warm_up},
            pass_fds=[calls, theirs],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(calls)
        os.close(theirs)
        self._calls, self._answers = os.fdopen(ours, "w"), os.fdopen(answers)
        assert self._answers.readline() == "ready\n"

    def begin(self, call: Call) -> int:
        """Begin a process; return its id."""
        return self._ask({name: getattr(call, name) for name in call.__slots__})

    def wait(self, process: int) -> int:
        """Wait for the end of a process; return its exit code."""
        return self._ask(process)

    def close(self) -> None:
        """End it."""
        self._calls.close()
        self._answers.close()
        self._process.wait(20)

    def _ask(self, question: object) -> int:
        print(json.dumps(question), file=self._calls, flush=True)
        return int(self._answers.readline())


class Forked(fdspawn):  # type: ignore[type-arg]
    """A process on a pseudo-terminal, for those who know pexpect.spawn."""

    exitstatus: int | None = None

    def __init__(self, zygote: Zygote, process: int, terminal: int, encoding: str | None) -> None:
        super().__init__(terminal, timeout=20, encoding=encoding, codec_errors="replace")
        self._zygote, self._process = zygote, process
        self.linesep = "\r"  # what the Enter key sends

    @property
    def seen(self) -> str:
        """What was read at last: all up to what was expected, and that."""
        return f"{self.before}{self.after}"

    def getecho(self) -> bool:
        return bool(self.modes()[3] & termios.ECHO)  # type: ignore[operator]

    def setwinsize(self, rows: int, cols: int) -> None:
        termios.tcsetwinsize(self.child_fd, (rows, cols))

    def sendintr(self) -> None:
        os.write(self.child_fd, b"\x03")

    def modes(self) -> list[object]:
        """Return what the terminal does with keys."""
        return termios.tcgetattr(self.child_fd)

    def kill(self, number: int) -> None:
        os.kill(self._process, number)

    def sendeof(self) -> None:
        os.write(self.child_fd, b"\x04")

    def wait(self) -> int:
        if self.exitstatus is None:
            self.exitstatus = self._zygote.wait(self._process)
        return self.exitstatus

    def close(self, force: bool = True) -> None:
        """End it, if it has not ended."""
        if self.exitstatus is None:
            os.kill(self._process, signal.SIGKILL)
            self.wait()
        super().close()


class Forks:
    """Programs on pseudo-terminals, forked from zygotes: one for each locale, begun when needed."""

    def __init__(self) -> None:
        self._zygotes: dict[str, Zygote] = {}
        self._stack = ExitStack()

    def begin(
        self,
        *args: str,
        size: tuple[int, int] = (80, 24),
        code: str = SPECLI,
        folder: Path | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
        encoding: str | None = "utf-8",
    ) -> Forked:
        """Begin a program. size: columns and lines. encoding: None for bytes."""
        columns, lines = size
        ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (lines, columns))
        whole = {**os.environ, "TERM": "xterm-256color", **environment}
        zygote = self._zygote(whole)
        call = Call(code, args, whole, (os.ttyname(theirs),) * 3, str(folder or Path.cwd()))
        process = zygote.begin(call)
        os.close(theirs)
        return Forked(zygote, process, ours, encoding)

    def close(self) -> None:
        """End the zygotes."""
        self._stack.close()

    def _zygote(self, environment: Mapping[str, str]) -> Zygote:
        locale = environment.get("LC_ALL", "")
        if locale not in self._zygotes:
            self._zygotes[locale] = zygote = Zygote(_CHAT, environment)
            self._stack.callback(zygote.close)
        return self._zygotes[locale]
