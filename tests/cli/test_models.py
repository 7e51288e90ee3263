"""specli models list, info, path, check, add and rm."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specli.errors import ModelError
from specli.models.hub import Remote
from specli.models.local import find_cached, remove_cached
from tests.cli.conftest import Result
from tests.hub import loopback_hub

Specli = Callable[..., Result]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache of this test's own."""
    folder = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


def put(cache: Path, repo: str, file: str, data: bytes, commit: str = "abc") -> Path:
    """Lay a file into the cache as the hub's library does."""
    folder = cache / f"models--{repo.replace('/', '--')}"
    blob = folder / "blobs" / str(hash(data))
    link = folder / "snapshots" / commit / file
    for path in (blob, link):
        path.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(data)
    link.symlink_to(os.path.relpath(blob, link.parent))
    return link


LLAMA_1B = ("bartowski/Llama-3.2-1B-Instruct-GGUF", "Llama-3.2-1B-Instruct-Q4_0.gguf")


def test_list_shows_what_is_here_what_fits_and_which_draft(specli: Specli, cache: Path) -> None:
    put(cache, *LLAMA_1B, b"GGUF" * 100)
    done = specli("models", "list", "--json")
    assert done.code == 0
    by_alias = {item["alias"]: item for item in json.loads(done.out)}
    assert len(by_alias) >= 40
    assert by_alias["llama-1b"]["path"].endswith("Q4_0.gguf")
    assert by_alias["llama-1b"]["size_bytes"] == 400
    assert by_alias["llama-70b"]["path"] is None
    assert by_alias["llama-70b"]["draft"] == "llama-1b"
    assert by_alias["demo"]["fits"] == "yes"
    shown = specli("models", "list").out
    assert "llama-70b" in shown
    here = specli("models", "list", "--here").out
    assert "llama-1b" in here
    assert "demo" in here
    assert "llama-70b" not in here.replace("draft", "")


def test_info_of_an_alias_and_of_a_file(specli: Specli, tiny: Path, cache: Path) -> None:
    facts = json.loads(specli("models", "info", "demo", "--json").out)
    assert (facts["architecture"], facts["layers"], facts["tokens"]) == ("llama", 30, 49152)
    facts = json.loads(specli("models", "info", tiny / "swa.gguf", "--json").out)
    assert "sliding window of 16" in facts["rollback"]
    facts = json.loads(specli("models", "info", tiny / "recurrent.gguf", "--json").out)
    assert facts["rollback"] == "none: decoded plainly"
    assert "llama3.3" in specli("models", "info", "llama-70b").out
    assert specli("models", "info", tiny / "nothing.gguf").code == 3


def test_path_is_for_scripts(specli: Specli, cache: Path) -> None:
    link = put(cache, *LLAMA_1B, b"GGUF")
    assert specli("models", "path", "llama-1b").out == f"{link}\n"
    assert specli("models", "path", "LLAMA-1b:Q4_0").out == f"{link}\n"
    missing = specli("models", "path", "llama-70b")
    assert (missing.code, missing.out) == (3, "")
    assert "specli pull llama-70b" in missing.err


@pytest.mark.parametrize(
    ("draft", "code", "said"),
    [
        ("draft", 0, "vocabularies: identical"),
        ("padded", 0, "20 tokens more, which is padding"),
        ("renamed", 4, "token 300 is"),
        ("larger", 4, "320 tokens, the draft 500"),
        ("no_bos", 4, "BOS is 1, added in the target, 1, not added"),
        ("recurrent", 0, "recurrent state that cannot drop tokens"),
        ("target", 0, "100% of the target's parameters"),
    ],
)
def test_check_says_whether_a_pair_works(
    specli: Specli, tiny: Path, draft: str, code: int, said: str
) -> None:
    done = specli("models", "check", tiny / "target.gguf", tiny / f"{draft}.gguf")
    assert done.code == code
    assert said in done.out
    assert ("they go together" in done.out) == (code == 0)
    report = json.loads(
        specli("models", "check", tiny / "target.gguf", tiny / f"{draft}.gguf", "--json").out
    )
    assert report["works"] == (code == 0)


def test_a_sidecar_is_no_draft(specli: Specli, tiny: Path, tmp_path: Path) -> None:
    data = (tiny / "draft.gguf").read_bytes()
    name = b"llama"
    at = data.index(b"general.architecture") + len(b"general.architecture") + 4
    length = int.from_bytes(data[at : at + 8], "little")
    assert data[at + 8 : at + 8 + length] == name
    path = tmp_path / "head.gguf"
    path.write_bytes(data[:at] + (6).to_bytes(8, "little") + b"eagle3" + data[at + 8 + length :])
    done = specli("models", "check", tiny / "target.gguf", path)
    assert done.code == 4
    assert "an EAGLE-3 head" in done.out
    done = specli("run", "hi", "-t", tiny / "target.gguf", "-d", path)
    assert done.code == 4
    assert "is no draft model but an EAGLE-3 head" in done.err


def test_check_before_a_download_reads_the_start_of_the_file(tiny: Path, tmp_path: Path) -> None:
    """From the loopback hub, by range: 9 MB more of weights stay where they are."""
    target = (tiny / "target.gguf").read_bytes() + bytes(9 << 20)
    with loopback_hub() as hub:
        hub.files = {
            "org/big/big-Q4_0.gguf": target,
            "org/small/small-Q4_0.gguf": (tiny / "draft.gguf").read_bytes(),
        }
        environment = {
            **os.environ,
            "HF_ENDPOINT": hub.endpoint,
            "HF_HUB_OFFLINE": "0",
            "HF_HOME": str(tmp_path),
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        command = [sys.executable, "-m", "specli", "models", "check"]
        command += ["hf:org/big/big-Q4_0.gguf", "hf:org/small/small-Q4_0.gguf"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        ranges = {request.range for request in hub.requests if request.method == "GET"}
        offline = subprocess.run(
            [*command, "--offline"], env=environment, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    assert "they go together" in done.stdout
    assert ranges == {f"bytes=0-{(8 << 20) - 1}"}
    assert not list(tmp_path.glob("**/*.gguf"))
    assert offline.returncode == 3
    assert "is not in the Hugging Face cache" in offline.stderr


def test_add_writes_the_users_registry(specli: Specli, tmp_path: Path) -> None:
    done = specli("models", "add", "mine", "hf:org/repo/sub/m.gguf", "--draft", "llama-1b")
    assert done.code == 0, done.err
    facts = json.loads(specli("models", "info", "mine", "--json").out)
    assert specli("models", "add", "odd", "hf:o/r/m.gguf", "--license", '"😀" [/x]').code == 0
    assert json.loads(specli("models", "info", "odd", "--json").out)["license"] == '"😀" [/x]'
    assert specli("models", "list").code == 0
    assert (facts["repo"], facts["file"], facts["draft"]) == ("org/repo", "sub/m.gguf", "llama-1b")
    assert (tmp_path / "config" / "specli" / "models.toml").exists()


def test_a_file_of_this_machine_gets_a_name(
    specli: Specli, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("target", "draft"):
        shutil.copy(tiny / f"{name}.gguf", tmp_path / f"{name}-q8_0.gguf")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "target-q8_0.gguf"
    done = specli("models", "add", "mine", "./target-q8_0.gguf", "--draft", "draft-q8_0.gguf")
    assert done.code == 0, done.err
    monkeypatch.chdir("/")
    item = json.loads(specli("models", "info", "mine", "--json").out)
    assert (item["path"], item["quant"], item["repo"]) == (str(path), "q8_0", None)
    assert item["size_bytes"] == path.stat().st_size
    assert specli("models", "path", "mine").out == f"{path}\n"
    assert re.search("mine +q8_0 .* yes +yes", specli("models", "list", "--here").out)
    done = specli("run", "hi", "-t", "mine", "-n", "3", "--json", "--raw")
    assert done.code == 0, done.err
    assert json.loads(done.out.splitlines()[0])["draft"] == "draft-q8_0"
    path.rename(tmp_path / "moved.gguf")
    for words in (("run", "hi", "-t", "mine"), ("models", "path", "mine"), ("pull", "mine")):
        gone = specli(*words)
        assert gone.code == 3
        assert f"mine: {path}: no such file" in gone.err
        assert "specli models rm mine" in gone.err
    assert re.search("mine +q8_0 .* gone ", specli("models", "list").out)
    assert specli("models", "rm", "mine", "--yes").code == 0
    assert "no model is called 'mine'" in specli("models", "rm", "mine", "--yes").err
    assert (tmp_path / "moved.gguf").exists()


def test_a_name_that_is_removed_leaves_the_others_and_what_is_said_of_them(
    specli: Specli, tiny: Path, tmp_path: Path
) -> None:
    path = tmp_path / "config" / "specli" / "models.toml"
    assert specli("models", "add", "small", tiny / "draft.gguf").code == 0
    path.write_text(f"# my models\n{path.read_text()}")
    assert specli("models", "add", "mine", tiny / "target.gguf", "--draft", "small").code == 0
    needed = specli("models", "rm", "small", "--yes")
    assert needed.code == 2
    assert "small is still needed: mine: no model is called 'small'" in needed.err
    refused = specli("models", "rm", "mine")
    assert refused.code == 2
    assert specli("models", "rm", "mine", "--yes").code == 0
    assert path.read_text().startswith("# my models\n")
    assert specli("models", "path", "small").out == f"{tiny / 'draft.gguf'}\n"
    (tmp_path / "no.gguf").write_text("GGML")
    assert specli("models", "add", "no", tmp_path / "no.gguf").code == 3
    assert "no" not in [line[8:-1] for line in path.read_text().splitlines()]


def test_what_is_not_known_of_a_size_is_not_said(specli: Specli, cache: Path) -> None:
    assert specli("models", "add", "mine", "hf:org/repo/m.gguf", "--draft", "llama-1b").code == 0
    assert re.search(r"mine +default +\? +- +\? +llama-1b", specli("models", "list").out)
    facts = json.loads(specli("models", "info", "mine", "--json").out)
    assert (facts["size_bytes"], facts["fits"]) == (None, None)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("mine", "hf:org/m.gguf"), "names no file on the hub"),
        (("mine", "nothing"), "no such file"),
        (("Mine!", "hf:org/repo/m.gguf"), "lower-case letters"),
        (("mine", "hf:org/repo/m.bin"), "is no GGUF file"),
        (("ngram", "hf:org/repo/m.gguf"), "is no alias"),
        (("mine", "hf:org/repo/../../m.gguf"), "is no path"),
        (("mine", "hf:org/repo/m.gguf", "--params-b", "nan"), "0 or more is wanted"),
        (("mine", "hf:org/repo/m.gguf", "--quant", ""), "is no quantization"),
        (("mine", "hf:org/repo/m.gguf", "--draft", "nobody"), "no model is called 'nobody'"),
        (("mine", "hf:org/repo/m.gguf", "--license", "\udcff"), "added is not valid UTF-8"),
    ],
)
def test_add_refuses_what_is_no_entry_and_leaves_the_file_alone(
    specli: Specli, tmp_path: Path, args: tuple[str, ...], said: str
) -> None:
    assert specli("models", "add", "good", "hf:org/repo/m.gguf").code == 0
    path = tmp_path / "config" / "specli" / "models.toml"
    before = path.read_text()
    done = specli("models", "add", *args)
    assert done.code == 2
    assert said in done.err
    assert path.read_text() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["models.toml"]


def test_adding_a_name_twice_is_refused(specli: Specli) -> None:
    assert specli("models", "add", "mine", "hf:org/repo/m.gguf").code == 0
    done = specli("models", "add", "mine", "hf:org/repo/other.gguf")
    assert done.code == 2
    assert "mine exists already in" in done.err


def test_rm_removes_from_the_cache_and_only_there(specli: Specli, cache: Path) -> None:
    link = put(cache, *LLAMA_1B, b"GGUF" * 1000)
    refused = specli("models", "rm", "llama-1b")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert link.exists()
    done = specli("models", "rm", "llama-1b", "--yes")
    assert done.code == 0, done.err
    assert not link.is_symlink()
    assert not list(cache.glob("**/blobs/*"))
    assert specli("models", "rm", "llama-1b", "--yes").code == 3
    wheel = specli("models", "rm", "demo", "--yes")
    assert wheel.code == 3
    assert "is not in the Hugging Face cache" in wheel.err


def test_a_file_goes_from_all_snapshots(cache: Path) -> None:
    first = put(cache, "o/r", "m.gguf", b"same", "one")
    second = put(cache, "o/r", "m.gguf", b"same", "two")
    assert remove_cached(first) == 4
    assert not second.is_symlink()
    assert not list(cache.glob("**/blobs/*"))


def test_nothing_outside_the_cache_is_removed(cache: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious.gguf"
    precious.write_bytes(b"mine")
    link = put(cache, "o/r", "m.gguf", b"x")
    link.unlink()
    link.symlink_to(precious)
    assert remove_cached(link) == 0
    assert not link.is_symlink()
    for path in (precious, link.parent / "../../../../precious.gguf"):
        with pytest.raises(ModelError, match="is not in the Hugging Face cache"):
            remove_cached(path)
    assert precious.read_bytes() == b"mine"


def test_a_split_model_is_found_and_removed_whole(cache: Path) -> None:
    remote = Remote("o/r", "m-00001-of-00002.gguf")
    first = put(cache, "o/r", "m-00001-of-00002.gguf", b"one")
    assert find_cached(remote) is None
    put(cache, "o/r", "m-00002-of-00002.gguf", b"three")
    assert find_cached(remote) == first
    assert remove_cached(first) == 8


def test_a_file_that_was_not_checked_does_not_count(cache: Path) -> None:
    put(cache, "o/r", "m.gguf", b"data")
    mark = cache / "models--o--r" / ".unchecked" / "m.gguf"
    mark.parent.mkdir()
    mark.touch()
    assert find_cached(Remote("o/r", "m.gguf")) is None
