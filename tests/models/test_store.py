"""Names to files: aliases, paths, wheels, the hub's cache."""

from pathlib import Path

import pytest

from specli.errors import ModelError
from specli.models.registry import Entry, File
from specli.models.store import Located, locate

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
        assert raised.value.hint == f"fetch it once with a network: specli pull {reference}"


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
    for offline in (True, False):
        for reference in ("small", "hf:org/repo/model.gguf"):
            assert locate(reference, REGISTRY, offline).path == snapshot / "model.gguf"


def test_a_quantization_is_found_by_its_name_in_the_cache(hub_cache: Path) -> None:
    for name in ("m-IQ4_XS.gguf", "m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "mmproj-Q4_K_M.gguf"):
        write(hub_cache, name)
    for name in ("BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf"):
        write(hub_cache, name)
    found = locate("hf:org/repo:q4_k_m", {}, offline=True)
    assert found == Located("m-Q4_K_M", snapshot(hub_cache) / "m-Q4_K_M.gguf")
    assert locate("hf:org/repo:BF16", {}, offline=True).path.name == "m-BF16-00001-of-00002.gguf"
    assert locate("small:q4_k_s", REGISTRY, offline=True).path.name == "m-Q4_K_S.gguf"
    for reference in ("hf:org/repo:q4_xs", "hf:org/repo:q4_k", "small:q6_k"):
        with pytest.raises(ModelError, match="is not in the Hugging Face cache"):
            locate(reference, REGISTRY, offline=True)


def test_a_split_model_is_here_when_all_of_it_is(hub_cache: Path) -> None:
    reference = "hf:org/repo/m-00001-of-00002.gguf"
    write(hub_cache, "m-00001-of-00002.gguf")
    with pytest.raises(ModelError, match="is not in the Hugging Face cache"):
        locate(reference, {}, offline=True)
    write(hub_cache, "m-00002-of-00002.gguf")
    assert locate(reference, {}, offline=True).path.name == "m-00001-of-00002.gguf"


def test_a_file_that_was_not_checked_is_not_here(hub_cache: Path) -> None:
    write(hub_cache, "m.gguf")
    (hub_cache / ".unchecked").mkdir()
    (hub_cache / ".unchecked" / "m.gguf").touch()
    with pytest.raises(ModelError, match="is not in the Hugging Face cache"):
        locate("hf:org/repo/m.gguf", {}, offline=True)


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of org/repo in a hub's cache of its own."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    repo = tmp_path / "models--org--repo"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("abc")
    return repo


def snapshot(repo: Path) -> Path:
    return repo / "snapshots" / "abc"


def write(repo: Path, name: str) -> None:
    path = snapshot(repo) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF")
