"""Names that the user gives."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from specli.models.own_names import add_name, remove_name
from specli.models.registry import read_registry, user_file

VALUES: dict[str, str | float] = {
    "name": "x",
    "repo": "",
    "vocabulary": "own",
    "license": "MIT",
    "params_b": 0.0,
    "context": 1,
}


def test_changes_at_the_same_time_are_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = add_name("first", VALUES, "q4_0", str(tmp_path / "m.gguf"))
    assert path == user_file()
    with ThreadPoolExecutor(8) as threads:
        done = [threads.submit(add_name, f"m{i}", VALUES, "q4_0", "/m.gguf") for i in range(8)]
        done.append(threads.submit(remove_name, "first"))
    assert {one.result() for one in done} == {path}
    assert {*read_registry(path)} == {f"m{i}" for i in range(8)}
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
