"""specli config: shows settings with their sources, sets, removes and edits them."""

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specli.cli.options import option_kinds
from specli.cli.sources import keys_of
from specli.config import config_file, load_config
from tests.cli.conftest import Result
from tests.cli.test_config import shown, write

Specli = Callable[..., Result]


def as_told(name: str, value: Any) -> str:
    """Return what `config get` prints of a value."""
    if name == "stop":
        return json.dumps([value] if isinstance(value, str) else value)
    return value if isinstance(value, str) else str(value).lower()


CHANGES: list[tuple[list[str], list[str], Any]] = [
    (["temp", "0.7"], ["temp"], 0.7),
    (["max-tokens", "7"], ["max_tokens"], 7),
    (["gpu_layers", "-1"], ["gpu_layers"], -1),
    (["stats", "false"], ["stats"], False),
    (["stats", "off"], ["stats"], False),
    (["stats", "Yes"], ["stats"], True),
    (["system", "off"], ["system"], "off"),
    (["system", "7"], ["system"], "7"),
    (["system", 'Say "yes"\n.'], ["system"], 'Say "yes"\n.'),
    (["stop", "a b"], ["stop"], "a b"),
    (["stop", "a", "b"], ["stop"], ["a", "b"]),
    (["draft_tokens", "auto"], ["draft_tokens"], "auto"),
    (["draft_tokens", "4"], ["draft_tokens"], 4),
    (["draft", "none"], ["draft"], "none"),
    (["target", "llama-8b:q5_k_m"], ["target"], "llama-8b:q5_k_m"),
    (["target", "hf:org/repo:q4_0"], ["target"], "hf:org/repo:q4_0"),
    (["pairs.llama-8b.draft", "llama-1b"], ["pairs", "llama-8b", "draft"], "llama-1b"),
    (['pairs."llama-8b".draft_tokens', "4"], ["pairs", "llama-8b", "draft_tokens"], 4),
    (["pairs.qwen2.5-7b.draft", "ngram"], ["pairs", "qwen2.5-7b", "draft"], "ngram"),
    (["pairs.llama-8b:q4_0.draft", "ngram"], ["pairs", "llama-8b:q4_0", "draft"], "ngram"),
    (['pairs."/a b/m.gguf".draft', "/d.gguf"], ["pairs", "/a b/m.gguf", "draft"], "/d.gguf"),
]


@pytest.mark.parametrize(("words", "place", "value"), CHANGES, ids=lambda v: str(v)[:30])
def test_what_is_set_is_written_and_can_be_unset(
    specli: Specli, words: list[str], place: list[str], value: Any
) -> None:
    write("# mine\n")
    done = specli("config", "set", *words)
    assert (done.code, done.out) == (0, "")
    config = load_config(keys_of(option_kinds()))
    if place[0] == "pairs":
        assert getattr(config.pairs[place[1]], place[2]) == str(value)
    else:
        assert config.values == {place[0]: value}
    assert specli("config", "get", words[0]).out == f"{as_told(place[-1], value)}\n"
    assert config_file().read_text().startswith("# mine\n")
    assert specli("config", "unset", words[0]).code == 0
    assert config_file().read_text().strip() == "# mine"


def test_a_path_is_kept_as_it_means_the_same_everywhere(
    specli: Specli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for key in ("target", "pairs.m.gguf.draft", "chat_template"):
        assert specli("config", "set", key, "x.gguf").code == 0
    found = load_config()
    assert found.values == {name: str(tmp_path / "x.gguf") for name in ("target", "chat_template")}
    assert found.pairs[str(tmp_path / "m.gguf")].draft == str(tmp_path / "x.gguf")


REFUSED = [
    (["set", "temp", "hot"], 2, 'temp is "hot", a number is wanted'),
    (["set", "temp", "-1"], 2, "temp is -1.0, 0.0 or more is wanted"),
    (["set", "threads", "0"], 2, "threads is 0, 1 to 512 is wanted"),
    (["set", "tempp", "1"], 2, "tempp is no setting"),
    (["set", "stats", "perhaps"], 2, 'stats is "perhaps", true or false is wanted'),
    (["set", "system", "a", "b"], 2, "system has one value, 2 were given"),
    (["set", "draft", "lama-1b"], 3, "no model is called 'lama-1b'"),
    (["set", "target", "ngram"], 3, "no model is called 'ngram'"),
    (["set", "draft_tokens", "65"], 2, 'draft_tokens is 65, "auto" or 0 to 64 is wanted'),
    (["set", "pairs.a.drafts", "x"], 2, 'pairs."a": drafts is no setting'),
    (["set", "pairs.a.temp", "1"], 2, 'pairs."a": temp is no setting'),
    (["set", "pairs.a.draft_tokens", "x"], 2, 'pairs.a.draft_tokens is "x", "auto" or 0 to 64'),
    (["set", "pairs.a", "x"], 2, "pairs.a is a table, one of its keys is wanted"),
    (["set", "pairs", "x"], 2, "pairs is a table, one of its keys is wanted"),
    (["set", "pairs.", "x"], 2, "the name of a target is wanted"),
    (["set", "pairs.\udcff.draft", "ngram"], 2, "what is to be set is not valid UTF-8"),
    (["get", "tempp"], 2, "tempp is no setting"),
    (["get", "seed"], 1, "seed is not set"),
    (["get", "pairs.a.draft"], 1, "pairs.a.draft is not set"),
    (["unset", "temp"], 2, "temp is not set there"),
]


@pytest.mark.parametrize(("args", "code", "said"), REFUSED, ids=lambda v: str(v)[:40])
def test_what_makes_no_sense_is_not_written(
    specli: Specli, args: list[str], code: int, said: str
) -> None:
    write("top_k = 3\n")
    done = specli("config", *args)
    assert (done.code, done.out) == (code, "")
    assert said in done.err.splitlines()[0]
    assert config_file().read_text() == "top_k = 3\n"


def test_config_shows_where_each_setting_is_from(
    specli: Specli, monkeypatch: pytest.MonkeyPatch
) -> None:
    write('temp = 0.5\n[pairs.demo]\ndraft = "none"\n')
    monkeypatch.setenv("SPECLI_TOP_K", "7")
    monkeypatch.setenv("SPECLI_TOPP_P", "1")
    monkeypatch.setenv("SPECLI_DEBUG", "0")
    done = specli("config")
    rows = {line.split()[0]: line.split()[1:] for line in done.out.splitlines() if line}
    assert rows["temp"] == ["0.5", "file"]
    assert rows["top_k"] == ["7", "environment", "SPECLI_TOP_K"]
    assert rows["draft"] == ["none", "pair", 'pairs."demo".draft']
    assert rows["min_p"] == ["0.05", "default"]
    assert rows["demo"] == ["none", "-"]
    said = "SPECLI_TOPP_P: no option has this variable; did you mean SPECLI_TOP_P?"
    assert done.err == f"warning: {said}\n"


def test_every_command_warns_of_variables_that_mean_nothing(
    specli: Specli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECLI_TEMPP", "1")
    said = "warning: SPECLI_TEMPP: no option has this variable; did you mean SPECLI_TEMP?\n"
    assert specli("models", "path", "demo").err == said
    assert specli("run", "hi", "-t", "./missing.gguf").err.startswith(f"{said}error: ")
    assert said not in specli("run", "hi", "-t", "./missing.gguf", "-q").err
    monkeypatch.setenv("SPECLI_RUN_QUIET", "1")
    assert said not in specli("run", "hi", "-t", "./missing.gguf").err


def test_config_shows_the_registered_draft(specli: Specli) -> None:
    write('target = "llama-8b"')
    assert shown(specli)["draft"] == {"value": "llama-1b", "source": "pair"}
    assert "models.toml" in specli("config").out
    write('target = "llama-9b"')  # what is wrong with it, the commands that load it say
    assert shown(specli)["draft"] == {"value": None, "source": "default"}


def editor(tmp_path: Path, text: str, code: int = 0) -> str:
    script = tmp_path / "my editor"
    body = f"import sys\nopen(sys.argv[1], 'w').write({text!r})\nsys.exit({code})\n"
    script.write_text(f"#!{sys.executable}\n{body}")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return f"'{script}'"


def test_edit_opens_an_editor_and_keeps_what_was_written(
    specli: Specli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv("VISUAL", editor(tmp_path, "temp = 0.5\n"))
    assert (specli("config", "edit").code, load_config().values) == (0, {"temp": 0.5})
    monkeypatch.setenv("VISUAL", "")
    monkeypatch.setenv("EDITOR", editor(tmp_path, "temp = -5\n"))
    done = specli("config", "edit")
    assert done.code == 2
    assert f"error: {config_file()}: temp is -5.0, 0.0 or more is wanted" in done.err
    assert "specli config edit opens it again" in done.err
    assert done.err.count("opens it") == 1
    assert config_file().read_text() == "temp = -5\n"
    monkeypatch.setenv("EDITOR", editor(tmp_path, "[", code=3))
    assert specli("config", "edit").code == 1
    monkeypatch.setenv("EDITOR", os.devnull)
    assert specli("config", "edit").code == 2
