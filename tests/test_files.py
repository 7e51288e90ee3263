"""Files that are none: what lies where one of ours is expected is named, and never waited for."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from specli.config import config_file, load_config
from specli.conversation_files import read, reopen
from specli.errors import SpecliError
from specli.files import check_place, open_regular, read_most, read_text
from specli.kv_state import load_state
from specli.models.header import architecture_of, read_header
from specli.models.registry import read_registry

READERS: list[Callable[[Path], object]] = [read, reopen, read_header, read_registry]
PLACES: dict[str, Callable[[Path], None]] = {
    "is a folder": lambda path: path.mkdir(),
    "is no regular file": os.mkfifo,
}


@pytest.fixture(params=PLACES)
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """Something that is no file, and what it is."""
    path = tmp_path / "odd.jsonl"
    PLACES[request.param](path)
    return path, request.param


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_named(odd: tuple[Path, str], reader: Callable[[Path], object]) -> None:
    path, said = odd
    with pytest.raises(SpecliError, match=f"odd.jsonl: .*{said}|Is a directory"):
        reader(path)


def test_nothing_depends_on_a_state(odd: tuple[Path, str]) -> None:
    assert load_state(odd[0], {}) is None
    assert architecture_of(odd[0]) == ""


@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES)
def test_config(make: Callable[[Path], None]) -> None:
    config_file().parent.mkdir(parents=True)
    make(config_file())
    with pytest.raises(SpecliError, match=r"config.toml: cannot be read: is "):
        load_config()


def test_a_device_without_an_end() -> None:
    with pytest.raises(OSError, match="no regular file"):
        open_regular(Path("/dev/zero"))
    with pytest.raises(SpecliError, match="/dev/zero: is larger than 50 MB"):
        read_most(Path("/dev/zero"))


def test_a_name_that_is_too_long_is_named(tmp_path: Path) -> None:
    for ask in (check_place, read_text):
        with pytest.raises(SpecliError, match=f"{'x' * 300}: cannot be .*[Ff]ile name too long"):
            ask(tmp_path / ("x" * 300))
