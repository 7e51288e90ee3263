"""Downloads of specli pull that do not come to their end, or not at once."""

import os
import signal
import time
from dataclasses import replace
from threading import Event

import pytest

from tests.cli.machine import BIG, FILE, KEPT, NAME, Machine, blob
from tests.hub import Faults

BREAKS = {
    "wrong hash": (
        Faults(wrong=True),
        [],
        "what came is not what the hub has: its sha256 is ",
        f"it was removed, start again; {KEPT}",
    ),
    "cut at 60 % for good": (
        Faults(cut=0.6),
        ["the connection broke; going on from there"],
        "the connection broke at 60 %: peer closed connection without sending complete message",
        f"check the network, then start again; {KEPT}",
    ),
    "416 after a cut": (
        Faults(cut=0.6, on_range=416),
        ["the connection broke; going on from there"],
        "the hub cannot go on where the connection broke (416)",
        f"start again; {KEPT}",
    ),
    "429 for the file": (
        Faults(get_status=429, headers={"Retry-After": "2"}),
        ["too many requests; the hub asks to wait 3 s"],
        "the hub says that these are too many requests (429)",
        "wait 2 s and start again; more are allowed to who is logged in: log in with: "
        f"hf auth login (or set HF_TOKEN); {KEPT}",
    ),
    "403 for the file": (
        Faults(get_status=403),
        [],
        "the hub refuses access (403)",
        "the token may not read this repository; see {endpoint}/org/big, or log in with: "
        f"hf auth login (or set HF_TOKEN); {KEPT}",
    ),
    "shorter than said": (
        Faults(size=(10 << 17) + 1),
        [],
        "less came than the hub has",
        f"start again; {KEPT}",
    ),
}


@pytest.mark.parametrize("case", BREAKS)
def test_a_download_that_breaks_leaves_nothing_and_starts_again(
    machine: Machine, case: str
) -> None:
    faults, notes, what, hint = BREAKS[case]
    machine.hub.faults = replace(faults, headers=dict(faults.headers))
    done = machine.pull(FILE)
    assert (done.code, done.out) == (3, "")
    fetching, *said, error, hinted = done.err.splitlines()
    assert fetching.startswith(f"fetching: {NAME} (1.3 MB)")
    assert said == [f"note: {NAME}: {note}" for note in notes]
    assert error.startswith(f"error: {NAME}: {what}")
    assert hinted == f"hint: {hint.format(endpoint=machine.hub.endpoint)}"
    assert machine.left() == {}

    machine.hub.faults = Faults()
    machine.hub.requests.clear()
    again = machine.pull(FILE)
    assert (again.code, again.err) == (0, f"fetching: {NAME} (1.3 MB)\n")
    assert [r.range for r in machine.hub.requests if r.method == "GET"] == [""]
    assert machine.left() == blob(NAME, BIG)


@pytest.mark.parametrize("on_range", [206, 200])
def test_a_connection_that_breaks_once_goes_on_within_the_same_call(
    machine: Machine, on_range: int
) -> None:
    machine.hub.faults = Faults(cut=0.6, n_cuts=1, on_range=on_range)
    done = machine.pull(FILE)
    assert (done.code, done.out) == (0, machine.snapshot(NAME) + "\n")
    assert done.err.splitlines() == [
        f"fetching: {NAME} (1.3 MB)",
        f"note: {NAME}: the connection broke; going on from there",
    ]
    ranges = [r.range for r in machine.hub.requests if r.method == "GET"]
    assert ranges[0] == ""
    assert ranges[1].startswith("bytes=")
    assert machine.left() == blob(NAME, BIG)


def test_a_slow_link_is_waited_for(machine: Machine) -> None:
    machine.hub.faults = Faults(pause_s=0.06)
    done = machine.pull(FILE)
    assert (done.code, done.out) == (0, machine.snapshot(NAME) + "\n")
    assert done.err == f"fetching: {NAME} (1.3 MB)\n"
    assert machine.left() == blob(NAME, BIG)


def test_a_silent_link_is_given_up_after_a_while(machine: Machine) -> None:
    machine.hub.faults = Faults(cut=0.6, hold=Event(), on_range=500)
    done = machine.pull(FILE)
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == [
        f"fetching: {NAME} (1.3 MB)",
        f"note: {NAME}: the connection broke; going on from there",
        f"error: {NAME}: the hub is out of order (500)",
        f"hint: start again later; {KEPT}",
    ]
    assert machine.left() == {}


def test_ctrl_c_leaves_nothing_and_says_so(machine: Machine) -> None:
    machine.hub.faults = Faults(cut=0.6, hold=Event())
    call = machine.start("pull", FILE)
    assert machine.hub.sent.wait(20)
    time.sleep(0.2)
    os.kill(call.pid, signal.SIGINT)
    done = call.wait()
    assert (done.code, done.out) == (130, ""), done.err
    assert done.err.splitlines() == [f"fetching: {NAME} (1.3 MB)", f"interrupted: {KEPT}"]
    assert machine.left() == {}


def test_ctrl_c_before_the_first_byte_ends_it_at_once(machine: Machine) -> None:
    machine.hub.faults = Faults(hold_head=Event())
    call = machine.start("pull", FILE)
    while not machine.hub.requests:
        time.sleep(0.01)
    time.sleep(0.1)
    started = time.monotonic()
    os.kill(call.pid, signal.SIGINT)
    done = call.wait()
    assert (
        time.monotonic() - started < 5
    )  # by itself the client waits for twice as long, many times
    assert (done.code, done.out) == (130, ""), done.err
    assert done.err == "interrupted: what has not come whole is not kept\n"
    assert machine.left() == {}


def test_a_killed_download_is_swept_and_does_not_look_finished(machine: Machine) -> None:
    machine.hub.faults = Faults(cut=0.6, hold=Event())
    call = machine.start("pull", FILE)
    assert machine.hub.sent.wait(20)
    os.kill(call.pid, signal.SIGKILL)
    assert call.wait().code == -signal.SIGKILL
    (left,) = [path for path in machine.left() if path.startswith("models--org--big/blobs")]
    assert left.endswith(".incomplete")
    assert not any("snapshots" in path for path in machine.left())
    (machine.cache / left).write_bytes(bytes(600_000))
    assert machine.pull("big", "--no-draft", "--offline").code == 3

    machine.hub.faults = Faults()
    done = machine.pull(FILE)
    assert (done.code, done.out) == (0, machine.snapshot(NAME) + "\n")
    assert done.err.splitlines() == [
        f"fetching: {NAME} (1.3 MB)",
        f"note: {NAME}: 600.0 kB of a download that was killed are dropped, they cannot be used",
    ]
    assert machine.left() == blob(NAME, BIG)


def test_a_disk_that_is_full_half_way(machine: Machine) -> None:
    done = machine.start("pull", FILE, file_limit=500_000).wait()
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == [
        f"fetching: {NAME} (1.3 MB)",
        f"error: {NAME}: the file is larger than may be written here ({machine.cache})",
        f"hint: free some space, or set HF_HOME to a folder on a larger disk; {KEPT}",
    ]
    assert machine.left() == {}
