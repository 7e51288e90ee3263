"""Ways to call the command line: in this process where it can be, in one of its own where not."""

import io
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import pytest

from specli.cli.app import main
from tests.cli.forking import Forks
from tests.cli.machine import BIG, NAME, Machine
from tests.hub import loopback_hub


@dataclass(frozen=True)
class Result:
    """What a call left behind."""

    code: int
    out: str
    err: str


@contextmanager
def files_of(n_bytes: int) -> Iterator[None]:
    """Let no file grow larger: a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, heard)


@pytest.fixture
def specli(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., Result]:
    """Run the command line here. stdin: what is piped in."""

    def call(*args: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["specli", *map(str, args)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as done:
            main()
        out, err = capfdbinary.readouterr()
        assert b"Traceback" not in err
        return Result(int(done.value.code or 0), out.decode(), err.decode())

    return call


@pytest.fixture(scope="package")
def _machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with loopback_hub() as hub:
        hub.files = {NAME: BIG}
        with closing(Machine(tmp_path_factory.mktemp("home"), hub)) as machine:
            yield machine


@pytest.fixture
def machine(_machine: Machine) -> Machine:
    """A machine and a hub as if they were new."""
    _machine.reset()
    return _machine


@pytest.fixture(scope="package")
def forks() -> Iterator[Forks]:
    """Programs on pseudo-terminals that begin quickly."""
    with closing(Forks()) as forks:
        yield forks
