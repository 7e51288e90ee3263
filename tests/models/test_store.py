"""Names to files: aliases, paths, wheels, the hub's cache."""

from pathlib import Path

import pytest

from specli.errors import ModelError
from specli.models.registry import Entry, File
from specli.models.store import locate

REGISTRY = {
    "small": Entry(
        alias="small",
        name="Small",
        repo="org/repo",
        files=(File("q4_0", "model.gguf"), File("q8_0", "model-q8.gguf")),
        vocabulary="v",
        params_b=0.1,
        license="MIT",
        context=2048,
        wheel="some_wheel",
    )
}


def test_a_path_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert locate("some/where.gguf", REGISTRY).path == Path("some/where.gguf")
    assert locate("plain.gguf", REGISTRY).name == "plain"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert locate("~/x.gguf", REGISTRY).path == tmp_path / "x.gguf"


def test_a_wheel_is_read_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "some_wheel"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert locate("small", REGISTRY, offline=True).path == folder / "model.gguf"


def test_what_is_not_here_says_how_to_fetch_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for reference in ("small", "hf:org/repo/model.gguf"):
        with pytest.raises(ModelError, match="is not in the Hugging Face cache") as raised:
            locate(reference, REGISTRY, offline=True)
        assert "hf download org/repo model.gguf" in raised.value.hint


@pytest.mark.parametrize("reference", ["hf:", "hf:a", "hf:a/b", "hf:a/b/", "hf://c"])
def test_half_a_hub_reference_is_refused(reference: str) -> None:
    with pytest.raises(ModelError, match="names no file on the hub"):
        locate(reference, REGISTRY)


def test_a_file_in_the_hubs_cache_needs_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = tmp_path / "models--org--repo"
    snapshot = repo / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("abc")
    (snapshot / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    said: list[str] = []
    for offline in (True, False):
        found = locate("small", REGISTRY, offline, said.append)
        assert found.path == snapshot / "model.gguf"
    assert said == []
