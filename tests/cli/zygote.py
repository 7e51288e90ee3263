"""Processes that do not wait for their imports: each is forked from this one.

Usage: zygote.py IN OUT, two file descriptors. It does first what WARM_UP says, in Python, so that
all is imported. Then it reads lines of JSON from IN. A call begins a process and is answered with
its id; such an id is answered with that process's exit code when it has ended. What Python and its
modules read when they begin, such as the locale and HF_HOME, is that of this process.
"""

import fcntl
import gc
import json
import os
import resource
import sys
import termios
from contextlib import suppress
from typing import Any


def begin(call: dict[str, Any]) -> int:
    """Fork a process; return its id."""
    streams = [os.open(path, os.O_RDWR | os.O_NOCTTY) for path in call["streams"]]
    child = os.fork()
    if not child:
        become(call, streams)
    for descriptor in streams:
        os.close(descriptor)
    return child


def become(call: dict[str, Any], streams: list[int]) -> None:
    """Be another program, to its end."""
    for i, descriptor in enumerate(streams):
        os.dup2(descriptor, i)
        os.close(descriptor)
    if os.isatty(0):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update(call["environment"])
    os.chdir(call["folder"])
    if call["file_limit"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (call["file_limit"],) * 2)
    sys.argv = ["specli", *call["args"]]
    exec(call["code"], {"__name__": "__main__"})
    sys.exit()


calls, answers = map(int, sys.argv[1:])
with suppress(SystemExit):
    exec(os.environ["WARM_UP"])
gc.freeze()  # or each process would collect it all again when it ends
os.write(answers, b"ready\n")
with os.fdopen(calls) as lines:
    while line := lines.readline():
        call = json.loads(line)
        if isinstance(call, dict):
            answer = begin(call)
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(call, 0)[1])
        os.write(answers, f"{answer}\n".encode())
