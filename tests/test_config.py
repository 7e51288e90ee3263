"""config.toml: what is saved is read, what the user wrote stays, what is wrong is named."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from specli.cli.options import ModelOptions
from specli.config import (
    FLAG,
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    Config,
    PairChoice,
    choice_of,
    config_file,
    load_config,
    pair_key,
    parse_config,
)
from specli.config_edit import save_pair, set_values, unset_value
from specli.errors import SpecliError, UsageError


def write(text: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(text)


def test_without_a_file_nothing_is_chosen() -> None:
    assert load_config() == Config()


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
    write('# mine\ncolor = "red"\n\n[pairs.a]  # the best\ndraft = "b"\n')
    save_pair("a", PairChoice("c", "auto"))
    set_values({("temp",): 0.5})
    text = config_file().read_text()
    assert text.startswith('# mine\ncolor = "red"\ntemp = 0.5\n')
    assert "[pairs.a]  # the best\n" in text
    assert load_config() == Config({"color": "red", "temp": 0.5}, {"a": PairChoice("c", "auto")})


def test_what_is_removed_takes_its_empty_table_along() -> None:
    write('temp = 1\n[pairs.a]\ndraft = "b"\n[pairs.c]\ndraft = "d"\ndraft_tokens = 3\n')
    unset_value(("pairs", "a", "draft"))
    unset_value(("pairs", "c", "draft"))
    assert config_file().read_text() == "temp = 1\n[pairs.c]\ndraft_tokens = 3\n"
    unset_value(("pairs", "c"))
    unset_value(("temp",))
    assert load_config() == Config()
    for place in (("temp",), ("pairs", "a"), ("pairs", "a", "draft"), ("temp", "x")):
        with pytest.raises(UsageError, match="is not set there"):
            unset_value(place)


@pytest.mark.parametrize("text", ['pairs.a.draft = "b"\n', 'pairs = {a = {draft = "b"}}\n'])
@pytest.mark.parametrize("place", [("pairs", "c", "draft"), ("pairs", "a", "draft"), ("temp",)])
def test_however_it_is_written_it_says_what_was_meant_or_stays(
    text: str, place: tuple[str, ...]
) -> None:
    write(text)
    with suppress(UsageError):
        set_values({("pairs", "c", "draft"): "d"})
    before, said = config_file().read_text(), ""
    try:
        set_values({place: "new"})
    except UsageError as error:
        said = error.message
    found = load_config()
    if said:
        assert "cannot be changed around the way in which it is written" in said
        assert config_file().read_text() == before
    elif place == ("temp",):
        assert found.values["temp"] == "new"
    else:
        assert found.pairs[place[1]].draft == "new"


WRONG = [
    ("[", "is not valid TOML", ""),
    ("pairs = 1", "pairs is 1, a table is wanted", "for example"),
    ("pairs.a = 1", 'pairs."a" is 1, a table is wanted', "for example"),
    ("pairs.a.draft = 1", 'pairs."a".draft is 1, a name in quotes is wanted', ""),
    ('pairs.a.draft = ""', 'pairs."a".draft is "", a name', ""),
    ("pairs.a.draft_tokens = 65", 'draft_tokens is 65, "auto" or 0 to 64 is wanted', ""),
    ("pairs.a.draft_tokens = true", "draft_tokens is true", ""),
    ('pairs.a.draft_tokens = "many"', 'draft_tokens is "many"', ""),
    ('pairs.a.drafts = "b"', 'pairs."a": drafts is no setting', "did you mean draft?"),
    ("pairs.a.x = 1", 'pairs."a": x is no setting', "known are draft, draft_tokens"),
]


def test_auto_may_be_written_as_on_the_command_line() -> None:
    write('pairs.a.draft_tokens = "AUTO"')
    assert load_config().pairs["a"].draft_tokens == "AUTO"
    assert ModelOptions(draft_tokens="AUTO").settings().k is None


@pytest.mark.parametrize(("text", "said", "hint"), WRONG)
def test_what_is_wrong_is_named_and_never_written_over(text: str, said: str, hint: str) -> None:
    write(text)
    with pytest.raises(UsageError, match=re.escape(f"{config_file()}: ")) as caught:
        load_config()
    assert said in caught.value.message
    assert caught.value.hint.startswith(hint)
    with pytest.raises(UsageError, match=re.escape(said)):
        save_pair("b", PairChoice("c"))
    with pytest.raises(UsageError, match=re.escape(said)):
        unset_value(("pairs", "a"))
    assert config_file().read_text() == text


KEYS = {
    "temp": NUMBER,
    "top_k": WHOLE,
    "stats": FLAG,
    "system": TEXT,
    "stop": TEXTS,
    "think": choice_of("show", "hide", "off"),
}


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ('temp = "hot"', 'temp is "hot", a number is wanted', ""),
        ("temp = true", "temp is true, a number is wanted", ""),
        ("temp = nan", "temp is nan, a number is wanted", ""),
        ("temp = 2026-01-01", "temp is 2026-01-01, a number is wanted", ""),
        ("top_k = 1.5", "top_k is 1.5, a whole number is wanted", ""),
        ("top_k = [1]", "top_k is [1], a whole number is wanted", ""),
        ("stats = 1", "stats is 1, true or false is wanted", ""),
        ("system = 7", "system is 7, a text in quotes is wanted", ""),
        ('stop = ["a", 1]', 'stop is ["a", 1], a text in quotes, or a list', ""),
        ('think = "no"', 'think is "no", "show", "hide" or "off" is wanted', ""),
        ("[temp]\nx = 1", "temp is a table, a number is wanted", ""),
        ("temprature = 1", "temprature is no setting", "did you mean temp?"),
        ("top-k = 1", "top-k is no setting", "did you mean top_k?"),
        ("pair.a.draft = 'b'", "pair is no setting", "did you mean pairs?"),
        ("zzz = 1", "zzz is no setting", "known are pairs, stats, stop, system, temp"),
    ],
)
def test_settings_are_checked_by_name_and_type(text: str, said: str, hint: str) -> None:
    write(text)
    with pytest.raises(UsageError, match=re.escape(f"{config_file()}: ")) as caught:
        load_config(KEYS)
    assert said in caught.value.message
    assert caught.value.hint.startswith(hint)


def test_settings_are_read() -> None:
    write('temp = 1\nstop = "x"\nthink = "off"\nstats = false\n')
    found = load_config(KEYS).values
    assert found == {"temp": 1, "stop": "x", "think": "off", "stats": False}


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


@pytest.mark.parametrize("text", ["seed = " + "9" * 5000, "x = " + "[" * 5000])
def test_numbers_and_lists_beyond_what_python_reads_are_errors(text: str) -> None:
    with pytest.raises(UsageError, match="not valid TOML"):
        parse_config(text)


def test_who_writes_at_the_same_time_loses_nothing() -> None:
    names = {f"model-{n}" for n in range(8)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: save_pair(name, PairChoice("none")), names))
    assert load_config().pairs.keys() == names
