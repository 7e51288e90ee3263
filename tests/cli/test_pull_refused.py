"""What keeps specli pull from beginning: a line and a hint, and nothing is left."""

from dataclasses import replace

import pytest

from tests.cli.machine import FILE, NAME, Machine
from tests.hub import Faults

GATED = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to this model is restricted"}
FAULTS = {
    "401 of a missing or private repository": (
        Faults(head_status=401),
        {},
        "the hub has no repository org/big that can be seen from here",
        "check its name; if it is private, log in with: hf auth login (or set HF_TOKEN)",
    ),
    "401 of a bad token": (
        Faults(token="right", headers={"X-Error-Message": "Invalid credentials"}),
        {"HF_TOKEN": "hf_wrong"},
        "the hub refuses the token (401)",
        "HF_TOKEN, or the token that hf auth login keeps, is wrong or has expired: log in again, "
        "or unset it",
    ),
    "a token that is none": (
        Faults(),
        {"HF_TOKEN": "hf_wr\u00f6ng"},
        "the token has characters that no token has",
        "check HF_TOKEN, or log in again with: hf auth login",
    ),
    "401 gated": (
        Faults(head_status=401, headers=GATED),
        {},
        "the repository is gated (401)",
        "ask for access on {endpoint}/org/big, then log in with: hf auth login (or set HF_TOKEN)",
    ),
    "403 gated": (
        Faults(head_status=403, headers=GATED),
        {"HF_TOKEN": "hf_other"},
        "the repository is gated (403)",
        "ask for access on {endpoint}/org/big, then log in with: hf auth login (or set HF_TOKEN)",
    ),
    "403": (
        Faults(head_status=403),
        {},
        "the hub refuses access (403)",
        "the token may not read this repository; see {endpoint}/org/big, or log in with: "
        "hf auth login (or set HF_TOKEN)",
    ),
    "404": (
        Faults(head_status=404, headers={"X-Error-Code": "EntryNotFound"}),
        {},
        "the repository has no such file",
        "see {endpoint}/org/big/tree/main",
    ),
    "429": (
        Faults(head_status=429, headers={"Retry-After": "120"}),
        {},
        "the hub says that these are too many requests (429)",
        "wait 120 s and start again; more are allowed to who is logged in: log in with: "
        "hf auth login (or set HF_TOKEN)",
    ),
    "503": (
        Faults(head_status=503),
        {},
        "the hub is out of order (503)",
        "start again later",
    ),
    "no space": (
        Faults(size=10**16),
        {},
        "10000.0 TB do not fit on the disk: {cache} has ",
        "free some space, or set HF_HOME to a folder on a larger disk; nothing was fetched",
    ),
    "not a hub": (
        Faults(not_a_hub=True),
        {},
        "{endpoint} does not answer as a hub does",
        "check HF_ENDPOINT, and whether a proxy or a log-in page answers instead",
    ),
    "nobody there": (
        Faults(),
        {"HF_ENDPOINT": "http://127.0.0.1:9"},
        "http://127.0.0.1:9 cannot be reached: [Errno 111] Connection refused",
        "check the network, or HF_ENDPOINT",
    ),
    "a proxy that refuses": (
        Faults(),
        {"HF_ENDPOINT": "https://hub.invalid", "HTTPS_PROXY": "{proxy}"},
        "the proxy 127.0.0.1:{port} lets nothing through: 407 Proxy Authentication Required",
        "check HTTPS_PROXY and HTTP_PROXY, or name the host in NO_PROXY",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_goes_wrong_before_the_first_byte_is_a_line_and_a_hint(
    machine: Machine, case: str
) -> None:
    faults, more, what, hint = FAULTS[case]
    port = machine.hub.server_port
    proxy = f"http://me:secret@127.0.0.1:{port}"
    words = {"endpoint": machine.hub.endpoint, "port": port, "proxy": proxy}
    words["cache"] = machine.cache
    machine.hub.faults = replace(faults, headers=dict(faults.headers))
    more = {key: value.format(**words) for key, value in more.items()}
    done = (machine.fresh if "HF_ENDPOINT" in more else machine.run)("pull", FILE, **more)
    assert (done.code, done.out) == (3, "")
    error, said = done.err.splitlines()
    assert error.startswith(f"error: {NAME}: {what.format(**words)}")
    assert said == f"hint: {hint.format(**words)}"
    assert "secret" not in done.err
    assert "hf_wr" not in done.err
    assert machine.left() == {}
    assert machine.hub.asked("GET") == []
