"""Processes of the command line that do not wait for its imports: each is forked from this one.

Usage: zygote.py IN OUT, two file descriptors. Reads lines of JSON from IN: arguments, environment
and where the streams go. Writes the new process's id to OUT, and its exit code when it has ended.
What huggingface_hub reads when it is imported (HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE) is that of
this process.
"""

import gc
import json
import os
import resource
import sys
import time
from contextlib import suppress
from typing import Any

from specli.cli.app import main

real_sleep = time.sleep


def become(call: dict[str, Any]) -> None:
    """Be the command line. The hub's client waits as often as ever, but not as long."""
    for descriptor, path in enumerate((os.devnull, call["out"], call["err"])):
        os.dup2(os.open(path, os.O_WRONLY if descriptor else os.O_RDONLY), descriptor)
    os.environ.clear()
    os.environ.update(call["environment"])
    if call["file_limit"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (call["file_limit"],) * 2)
    time.sleep = short_sleep
    sys.argv = ["specli", *call["args"]]
    main()


def short_sleep(seconds: Any) -> None:
    """Sleep, but not long."""
    real_sleep(min(float(seconds), 0.01))


calls, answers = map(int, sys.argv[1:])
sys.argv = ["specli", "pull", *os.environ["WARM_UP"].split()]
with suppress(SystemExit):
    main()  # so that all is imported
gc.freeze()  # or each process would collect it all again when it ends
os.write(answers, b"ready\n")
with os.fdopen(calls) as lines:
    while line := lines.readline():
        child = os.fork()
        if not child:
            become(json.loads(line))
        os.write(answers, f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())
