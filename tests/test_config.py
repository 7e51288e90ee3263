"""config.toml: what is saved is read, what the user wrote stays, what is wrong is named."""

from pathlib import Path

import pytest

from specli.config import Config, PairChoice, config_file, load_config, pair_key, save_pair
from specli.errors import SpecliError, UsageError


def write(text: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(text)


def test_without_a_file_nothing_is_chosen() -> None:
    assert load_config() == Config({})


def test_what_is_saved_is_read_again() -> None:
    save_pair("llama-8b", PairChoice("llama-1b", "auto"))
    save_pair('/odd "name".gguf', PairChoice("ngram", "4"))
    save_pair("llama-8b", PairChoice(draft_tokens="2"))
    assert load_config().pairs == {
        "llama-8b": PairChoice("llama-1b", "2"),
        '/odd "name".gguf': PairChoice("ngram", "4"),
    }
    assert [path.name for path in config_file().parent.iterdir()] == ["config.toml"]


def test_what_else_stands_there_stays() -> None:
    write('# mine\ncolor = "red"\n\n[pairs.a]  # the best\ndraft = "b"\nother = 1\n')
    save_pair("a", PairChoice("c", "auto"))
    text = config_file().read_text()
    assert '# mine\ncolor = "red"\n' in text
    assert "# the best" in text
    assert "other = 1" in text
    assert load_config().pairs["a"] == PairChoice("c", "auto")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "is not valid TOML"),
        ("pairs = 1", "pairs is no table"),
        ("pairs.a = 1", 'pairs."a" is no table'),
        ("pairs.a.draft = 1", 'pairs."a".draft is no name'),
        ('pairs.a.draft = ""', 'pairs."a".draft is no name'),
        ("pairs.a.draft_tokens = 65", 'draft_tokens is 65, "auto" or 0 to 64 is wanted'),
        ("pairs.a.draft_tokens = true", "draft_tokens is True"),
        ('pairs.a.draft_tokens = "many"', "draft_tokens is many"),
    ],
)
def test_what_is_wrong_is_named_and_never_written_over(text: str, said: str) -> None:
    write(text)
    with pytest.raises(UsageError, match=said):
        load_config()
    with pytest.raises(UsageError, match=said):
        save_pair("b", PairChoice("c"))
    assert config_file().read_text() == text


def test_files_that_cannot_be_read_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("")
    config_file().write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot be read"):
        load_config()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with pytest.raises(SpecliError, match="cannot be"):
        save_pair("a", PairChoice("b"))


def test_a_file_is_called_the_same_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pair_key("m.gguf", True) == str(tmp_path / "m.gguf")
    assert pair_key("llama-8b:q4_0", False) == "llama-8b:q4_0"
