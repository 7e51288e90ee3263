"""The models.toml of the package: whom it names, whom it pairs, and its schema."""

import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from scripts import make_schema
from specli.models.registry import Entry, read_registry
from tests.models.test_registry import GOOD, MALFORMED

REGISTRY = make_schema.ROOT / "models.toml"
ENTRIES = read_registry(REGISTRY)

FAMILIES = {
    "Llama 3": ["llama-70b", "llama-8b", "llama-3b", "llama-1b"],
    "Qwen2.5 Coder": [f"qwen-coder-{size}b" for size in ("32", "14", "7", "3", "1.5", "0.5")],
    "Qwen3": [f"qwen3-{size}b" for size in ("32", "14", "8", "4", "1.7", "0.6")],
    "Qwen3.5 and 3.6": ["qwen3.5-9b", "qwen3.6-27b", "qwen3.6-35b-a3b"],
    "Gemma 3": [f"gemma3-{size}" for size in ("27b", "12b", "4b", "1b", "270m")],
    "Gemma 4": ["gemma4-31b", "gemma4-31b-mtp"],
    "Mistral": ["mistral-small-24b", "mistral-nemo-12b", "mistral-7b"],
    "DeepSeek-R1": [f"deepseek-r1-{size}b" for size in ("70", "32", "14", "8", "7", "1.5")],
    "Phi-4": ["phi-4", "phi-4-mini"],
    "gpt-oss": ["gpt-oss-120b", "gpt-oss-20b", "gpt-oss-20b-eagle3"],
    "SmolLM2": ["smollm2-1.7b", "smollm2-360m", "smollm2-135m", "demo"],
    "Granite": ["granite-8b", "granite-2b", "granite4-micro"],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_there(family: str) -> None:
    assert set(FAMILIES[family]) <= set(ENTRIES)


def test_there_are_models_enough() -> None:
    assert len(ENTRIES) >= 45
    assert len({entry.vocabulary for entry in ENTRIES.values()}) >= 13
    assert {entry.method for entry in ENTRIES.values()} == {"draft", "ngram", "mtp", "eagle3"}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_a_pair_shares_a_vocabulary_and_says_how_it_guesses(entry: Entry) -> None:
    if entry.draft not in ENTRIES:
        assert entry.draft in ("ngram", "none")
        assert entry.method != "draft"
        return
    draft = ENTRIES[entry.draft]
    assert draft.vocabulary == entry.vocabulary
    assert draft.params_b < entry.params_b
    assert entry.method != "ngram"
    # The layers of another model are of use to that one alone.
    assert (draft.draft == "none") == (entry.method in ("mtp", "eagle3"))
    assert draft.method == entry.method or entry.method == "draft"


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_a_gain_has_a_source_and_a_date_a_form(entry: Entry) -> None:
    assert bool(entry.gain) == bool(entry.gain_source)
    assert not entry.gain or entry.gain > 1
    assert not entry.checked or len(entry.checked) == len("2026-11")
    assert entry.params_b > 0
    assert entry.context >= 2048


def test_the_schema_is_fresh() -> None:
    assert make_schema.SCHEMA.read_text() == make_schema.dump(), "run scripts/make_schema"


def test_the_registry_is_valid_and_names_its_schema() -> None:
    Draft7Validator.check_schema(make_schema.schema())
    text = REGISTRY.read_text()
    Draft7Validator(make_schema.schema()).validate(tomllib.loads(text))
    first = text.splitlines()[0]
    assert first.startswith("#:schema ")
    assert (REGISTRY.parent / first.removeprefix("#:schema ")).resolve() == make_schema.SCHEMA


def test_the_schema_refuses_what_the_registry_refuses() -> None:
    validator = Draft7Validator(make_schema.schema())
    validator.validate(tomllib.loads(GOOD))
    for text, _, said in MALFORMED:
        if said != "not valid TOML":
            assert not validator.is_valid(tomllib.loads(text)), said


def test_check_finds_a_stale_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = tmp_path / "models.schema.json"
    monkeypatch.setattr(make_schema, "SCHEMA", schema)
    monkeypatch.setattr("sys.argv", ["make_schema"])
    assert make_schema.main() == 0
    monkeypatch.setattr("sys.argv", ["make_schema", "--check"])
    assert make_schema.main() == 0
    schema.write_text("{}")
    assert make_schema.main() == 1
