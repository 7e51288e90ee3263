"""models.toml: what it holds, and what is said of one that is wrong."""

from pathlib import Path

import pytest

from specli.errors import ModelError
from specli.models.registry import find, load_registry, read_registry

GOOD = """\
[models.tiny]
name = "Tiny"
repo = "org/tiny-GGUF"
vocabulary = "tiny"
params_b = 0.1
license = "MIT"
context = 2048
[models.tiny.files]
q4_0 = { file = "tiny-q4_0.gguf", size_bytes = 123 }
q8_0 = { file = "tiny-q8_0.gguf" }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "models.toml"
    path.write_text(text)
    return path


def test_an_entry_is_read_whole(tmp_path: Path) -> None:
    entry = read_registry(written(tmp_path, GOOD))["tiny"]
    assert (entry.name, entry.context, entry.draft, entry.method) == (
        "Tiny",
        2048,
        "ngram",
        "ngram",
    )
    assert entry.quant().file == "tiny-q4_0.gguf"
    assert entry.quant().size_bytes == 123
    assert entry.quant("Q8_0").file == "tiny-q8_0.gguf"
    with pytest.raises(ModelError, match="has no quantization 'q9'") as raised:
        entry.quant("q9")
    assert raised.value.hint == "it has q4_0, q8_0"


def test_the_users_file_adds_to_the_packages_and_wins(tmp_path: Path) -> None:
    own = GOOD + GOOD.replace("models.tiny", "models.demo").replace("Tiny", "Mine")
    registry = load_registry(written(tmp_path, own))
    assert registry["tiny"].name == "Tiny"
    assert registry["demo"].name == "Mine"
    assert "llama-70b" in registry


def test_an_unknown_alias_names_what_comes_near() -> None:
    with pytest.raises(ModelError, match="no model is called 'lama-8b'") as raised:
        find(load_registry(), "lama-8b")
    assert "llama-8b" in raised.value.hint
    assert find(load_registry(), "Llama-8B").alias == "llama-8b"


MALFORMED = [
    (GOOD.replace("[models.tiny]", "[models.tiny"), "line 1", "not valid TOML"),
    (GOOD.replace('"Tiny"', "Tiny"), "line 2", "not valid TOML"),
    (GOOD + "[pairs]\n", ":11:", "unknown table 'pairs'"),
    (GOOD.replace("repo =", "rep0 ="), ":3:", "did you mean 'repo'?"),
    (GOOD.replace("context = 2048", 'context = "2k"'), ":7:", "a whole number is wanted"),
    (GOOD.replace("name = ", "# name = "), ":1:", "name is missing"),
    (GOOD.replace("org/tiny-GGUF", "tiny"), ":3:", "org/name"),
    (GOOD.replace("[models.tiny.files]", 'method = "magic"\n[models.tiny.files]'), ":8:", "eagle3"),
    (GOOD.replace("= 123", "= 1.5"), ":9:", "size_bytes is 1.5"),
    (GOOD.replace("tiny-q8_0.gguf", "tiny-q8_0.bin"), ":10:", "is no GGUF file"),
    (GOOD.replace("size_bytes = 123", 'sha256 = "12"'), ":9:", "64 hexadecimal digits"),
    (GOOD.replace("models.tiny", "models.Tiny"), ":1:", "lower-case letters"),
    (GOOD.replace('{ file = "tiny-q8_0.gguf" }', '"tiny-q8_0.gguf"'), ":10:", "{ file = "),
    ("models = 3\n", ":1:", "models is no table"),
]


@pytest.mark.parametrize(("text", "line", "said"), MALFORMED, ids=[said for *_, said in MALFORMED])
def test_a_malformed_file_is_named_with_line_key_and_fix(
    tmp_path: Path, text: str, line: str, said: str
) -> None:
    with pytest.raises(ModelError) as raised:
        read_registry(written(tmp_path, text))
    assert line in raised.value.message
    assert said in f"{raised.value.message} {raised.value.hint}"


def test_a_draft_that_is_not_there_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace("context = 2048", 'context = 2048\ndraft = "tinier"')
    with pytest.raises(ModelError, match="no model is called 'tinier'"):
        load_registry(written(tmp_path, text))
