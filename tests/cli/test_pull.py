"""specli pull against a loopback hub, in processes of its own: what is said, and what is left."""

import json
import os
import pty
from threading import Thread

import pytest

from tests.cli.machine import BIG, FILE, LITTLE, LITTLE_NAME, NAME, Machine, Result, blob
from tests.hub import COMMIT, Faults, content


def test_a_pair_comes_whole_and_then_needs_no_network(machine: Machine) -> None:
    done = machine.pull("big")
    little = LITTLE_NAME
    assert done.code == 0
    assert done.out.splitlines() == [machine.snapshot(NAME), machine.snapshot(little)]
    assert done.err.splitlines() == [f"fetching: {NAME} (1.3 MB)", f"fetching: {little} (10.0 kB)"]
    assert machine.left() == blob(NAME, BIG) | blob(little, LITTLE)

    machine.hub.requests.clear()
    assert machine.pull("big", "--offline") == Result(0, done.out, "")
    assert machine.fresh("pull", "big", HF_HUB_OFFLINE="1") == Result(0, done.out, "")
    again = machine.pull("big", "--json")
    assert (again.code, again.err) == (0, "")
    assert [json.loads(line) for line in again.out.splitlines()] == [
        {"name": "big", "path": machine.snapshot(NAME), "fetched": False},
        {"name": "little", "path": machine.snapshot(little), "fetched": False},
    ]
    assert machine.hub.requests == []


@pytest.mark.parametrize("forbid", ["--offline", "HF_HUB_OFFLINE"])
def test_offline_nothing_is_asked_for(machine: Machine, forbid: str) -> None:
    if forbid == "--offline":
        done = machine.pull("big", "--offline")
    else:
        done = machine.fresh("pull", "big", HF_HUB_OFFLINE="1")
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == [
        f"error: {NAME}: is not in the Hugging Face cache",
        "hint: fetch it once with a network: specli pull big",
    ]
    assert machine.left() == {}
    assert machine.hub.requests == []


def test_a_redirect_is_followed_without_the_token(machine: Machine) -> None:
    machine.hub.faults = Faults(redirect=True, token="hf_mine")
    done = machine.run("pull", FILE, HF_TOKEN="hf_mine")
    assert (done.code, done.out) == (0, machine.snapshot(NAME) + "\n")
    assert done.err == f"fetching: {NAME} (1.3 MB)\n"
    assert machine.left() == blob(NAME, BIG)
    heads, gets = ([r for r in machine.hub.requests if r.method == m] for m in ("HEAD", "GET"))
    assert {r.authorization for r in heads} == {"Bearer hf_mine"}
    assert [(r.path, r.authorization) for r in gets] == [(f"/storage/{NAME}", "")]


def test_all_parts_of_a_split_file_come_and_complete_ones_are_kept(machine: Machine) -> None:
    names = [f"org/split/m-Q8_0-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    files = {name: content(50_000, name) for name in names}
    machine.hub.files |= files
    machine.hub.faults = Faults(only="2-of-00003.gguf", get_status=500)
    done = machine.pull("hf:org/split:q8_0")
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines() == [
        f"fetching: {names[0]} (150.0 kB)",
        f"error: {names[1]}: the hub is out of order (500)",
        "hint: start again later; 1 of 3 files are kept, of the others nothing",
    ]
    assert machine.left() == blob(names[0], files[names[0]])

    missing = machine.pull("hf:org/split:q8_0", "--offline")
    assert (missing.code, missing.out) == (3, "")
    assert missing.err.startswith("error: hf:org/split:q8_0: is not in the Hugging Face cache\n")

    machine.hub.faults = Faults()
    machine.hub.requests.clear()
    done = machine.pull("hf:org/split:q8_0")
    assert (done.code, done.out) == (0, machine.snapshot(names[0]) + "\n")
    assert done.err == f"fetching: {names[0]} (100.0 kB, 1 of 3 files are here already)\n"
    assert set(machine.hub.asked()) == {
        "main?recursive=true&expand=false",
        *(name.rsplit("/", 1)[1] for name in names[1:]),
    }
    assert machine.left() == {k: v for name in names for k, v in blob(name, files[name]).items()}
    assert machine.pull("hf:org/split:q8_0", "--offline").out == done.out


def test_the_registered_hash_is_asked_for_first(machine: Machine) -> None:
    machine.hub.files[NAME] = BIG + b"!"
    done = machine.pull("big")
    assert (done.code, done.out) == (3, "")
    error, hint = done.err.splitlines()
    assert error.startswith(f"error: {NAME}: the hub has another file than the registered one: ")
    assert hint == f"hint: the repository has changed; {FILE} takes the file as it is now"
    assert machine.left() == {}
    assert machine.hub.asked() == []


def test_a_hub_without_hashes_is_believed_and_that_is_said(machine: Machine) -> None:
    machine.hub.faults = Faults(no_hash=True)
    done = machine.pull(FILE)
    assert (done.code, done.out) == (0, machine.snapshot(NAME) + "\n")
    assert f"note: {NAME}: the hub tells no sha256 of it, so it was not checked" in done.err
    assert machine.left()[f"models--org--big/snapshots/{COMMIT}/big-Q4_0.gguf"] == BIG


def test_a_quantization_that_is_not_there(machine: Machine) -> None:
    for reference, what in (("hf:org/big:q5_k_m", "hf:org/big:q5_k_m"), ("big:q6_k", "big:q6_k")):
        done = machine.pull(reference)
        quant = reference.rpartition(":")[2]
        assert (done.code, done.out) == (3, "")
        assert done.err.splitlines() == [
            f"error: {what}: org/big has no file of the quantization {quant}",
            "hint: it has q4_0",
        ]
    assert machine.left() == {}


def test_a_quantization_that_only_the_repository_names_is_found_again(machine: Machine) -> None:
    name = NAME.replace("Q4_0", "Q6_K")
    machine.hub.files[name] = BIG
    missing = machine.run("models", "path", "big:q6_k")
    assert missing.err.splitlines() == [
        "error: big:q6_k: is not in the Hugging Face cache",
        "hint: fetch it once with a network: specli pull big:q6_k",
    ]
    path = machine.pull("big:q6_k", "--no-draft").out
    assert path == machine.snapshot(name) + "\n"
    assert machine.run("models", "path", "big:Q6_K").out == path
    assert machine.run("models", "rm", "big:q6_k", "--yes").code == 0
    assert machine.left() == {}


def test_a_terminal_sees_bars(machine: Machine) -> None:
    machine.hub.faults = Faults(pause_s=0.05)
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def read() -> None:
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:
                return
            seen.append(data)

    reader = Thread(target=read, daemon=True)
    reader.start()
    terminal = {"TERM": "xterm", "COLUMNS": "120"}
    done = machine.start(
        "models", "pull", "big", err=os.ttyname(theirs), environment=terminal
    ).wait()
    os.close(theirs)
    reader.join(5)
    assert (done.code, len(done.out.splitlines())) == (0, 2)
    text = b"".join(seen).decode()
    assert f"fetching: {NAME} (1.3 MB)" in text
    assert "big-Q4_0.gguf" in text
    assert "little-Q4_0.gguf" in text
    assert "MB/s" in text or "kB/s" in text
    assert "/1.3 MB" in text


def test_run_fetches_what_it_needs(machine: Machine) -> None:
    done = machine.fresh("run", "hello", "-t", "big")
    assert done.code == 3  # it is no model
    assert done.err.startswith(f"fetching: {NAME} (1.3 MB)\nfetching: org/little/")
    assert machine.left() == blob(NAME, BIG) | blob(LITTLE_NAME, LITTLE)
