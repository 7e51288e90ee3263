"""Files that other programs keep are used where they lie."""

import json
from pathlib import Path

import pytest

from specli.errors import ModelError
from specli.models.caches import elsewhere
from specli.models.hub import Remote
from specli.models.registry import Entry, File
from specli.models.store import locate

DATA = b"GGUF and so on"
REMOTE = Remote("org/repo-GGUF", "m-Q4_0.gguf")
SPLIT = Remote("org/repo-GGUF", "BF16/m-00001-of-00002.gguf")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CACHE_HOME", "LLAMA_CACHE", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def write(path: Path, data: bytes = DATA) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "place",
    [
        ".lmstudio/models/org/repo-GGUF/m-Q4_0.gguf",
        ".lmstudio/models/somebody/else/m-Q4_0.gguf",
        ".cache/lm-studio/models/org/repo-GGUF/m-Q4_0.gguf",
        ".cache/llama.cpp/org_repo-GGUF_m-Q4_0.gguf",
        ".cache/llama.cpp/m-Q4_0.gguf",
    ],
)
def test_a_file_of_the_same_name(home: Path, place: str) -> None:
    assert elsewhere(REMOTE) is None
    path = write(home / place)
    assert elsewhere(REMOTE) == path
    assert elsewhere(Remote(REMOTE.repo, REMOTE.file, size_bytes=len(DATA))) == path
    assert elsewhere(Remote(REMOTE.repo, REMOTE.file, size_bytes=5)) is None


def test_folders_that_are_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_CACHE", str(home / "llamas"))
    path = write(home / "llamas" / "m-Q4_0.gguf")
    assert elsewhere(REMOTE) == path


def test_a_split_model_counts_when_all_parts_are_there(home: Path) -> None:
    folder = home / ".lmstudio/models/org/repo-GGUF"
    first = write(folder / "m-00001-of-00002.gguf")
    assert elsewhere(SPLIT) is None
    write(folder / "m-00002-of-00002.gguf")
    assert elsewhere(SPLIT) == first


def test_ollama_has_it_under_its_hash(home: Path) -> None:
    path = write(home / ".ollama/models/blobs" / f"sha256-{'a' * 64}")
    assert elsewhere(Remote("org/repo", "m.gguf", sha256="a" * 64)) == path
    assert elsewhere(Remote("org/repo", "m.gguf", sha256="b" * 64)) is None


def test_an_alias_uses_what_is_there(home: Path) -> None:
    files = (File("q4_0", REMOTE.file),)
    entry = Entry("small", "Small", REMOTE.repo, files, "v", 0.1, "MIT", 2048)
    path = write(home / ".cache/llama.cpp/m-Q4_0.gguf")
    found = locate("small", {"small": entry}, offline=True)
    assert (found.name, found.path, found.entry) == ("small", path, entry)


@pytest.mark.parametrize(
    ("reference", "manifest"),
    [
        ("ollama:llama3.2:1b", "registry.example/library/llama3.2/1b"),
        ("ollama:llama3.2", "registry.example/library/llama3.2/latest"),
        ("ollama:me/mine:q8", "registry.example/me/mine/q8"),
        ("ollama:hub.example/me/mine:q8", "hub.example/me/mine/q8"),
    ],
)
def test_a_model_by_its_name_in_ollama(home: Path, reference: str, manifest: str) -> None:
    models = home / ".ollama" / "models"
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:01"},
        {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:02"},
    ]
    with pytest.raises(ModelError, match="Ollama has no such model"):
        locate(reference, {})
    write(models / "manifests" / manifest, json.dumps({"layers": layers}).encode())
    with pytest.raises(ModelError, match="sha256-02 is missing"):
        locate(reference, {})
    path = write(models / "blobs" / "sha256-02")
    assert locate(reference, {}).path == path
    assert locate(reference, {}).name == reference.removeprefix("ollama:")


DEEP = pytest.param("[" * 100_000, id="deep")


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"layers": []}', '{"layers": [{}]}', "\xff", DEEP]
)
def test_a_manifest_that_names_nothing(home: Path, text: str) -> None:
    write(home / ".ollama/models/manifests/x/library/m/latest", text.encode("latin-1"))
    with pytest.raises(ModelError, match="names no model file"):
        locate("ollama:m", {})


@pytest.mark.parametrize("reference", ["ollama:", "ollama:../../x", "ollama:m:../../x"])
def test_a_name_that_is_none(reference: str) -> None:
    with pytest.raises(ModelError, match="Ollama has no such model"):
        locate(reference, {})
