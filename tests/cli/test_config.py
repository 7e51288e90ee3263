"""Settings: where they come from, which wins, and how specli config shows and changes them."""

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

from specli.cli.app import app
from specli.cli.options import option_kinds
from specli.cli.sources import keys_of
from specli.cli.variables import commands_of
from specli.config import config_file, load_config
from tests.cli.conftest import Result

Specli = Callable[..., Result]


def write(text: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(text)


def sample(name: str) -> Any:
    """Return a value for an option, other than its default, as TOML has it."""
    special = {"draft_tokens": 3, "target": "llama-8b", "draft": "none", "stop": ["a b"]}
    if name in special:
        return special[name]
    key, default = keys_of(option_kinds())[name], name == "stats"
    choices = ["hide", "off", "text"]
    return next(v for v in [not default, 2, 0.5, *choices] if key.accepts(v))


def in_words(value: Any) -> str:
    return value[0] if isinstance(value, list) else str(value).lower()


def shown(specli: Specli) -> dict[str, Any]:
    done = specli("config", "--json")
    assert (done.code, done.err) == (0, "")
    settings: dict[str, Any] = json.loads(done.out)["settings"]
    return settings


def test_every_shared_option_has_a_key_and_a_variable(
    specli: Specli, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = {name: sample(name) for name in option_kinds()}
    assert {setting["source"] for setting in shown(specli).values()} == {"default"}
    write("".join(f"{name} = {json.dumps(value)}\n" for name, value in samples.items()))
    found = shown(specli)
    assert found.keys() == samples.keys()
    for name, value in samples.items():
        wanted = str(value) if name == "draft_tokens" else value
        assert found[name] == {"value": wanted, "source": "file"}
    for name in samples:
        write("")
        monkeypatch.setenv(f"SPECLI_{name.upper()}", in_words(samples[name]))
    for name, setting in shown(specli).items():
        assert setting["source"] == "environment"
        kind = type(samples[name]) if name != "draft_tokens" else str
        assert setting["value"] == kind(samples[name])
    for name in samples:
        monkeypatch.setenv(f"SPECLI_{name.upper()}", "")  # as good as not set
    assert {setting["source"] for setting in shown(specli).values()} == {"default"}


def test_every_option_of_every_command_has_a_variable_of_its_own() -> None:
    root = typer.main.get_command(app)
    shared = {f"SPECLI_{name.upper()}" for name in option_kinds()}
    seen: dict[str, str] = {}
    for command, path in commands_of(root, ()):
        for param in command.params:
            if param.param_type_name == "option" and param.name not in NONE:
                assert param.envvar
                if param.envvar not in shared:
                    assert param.envvar.startswith("_".join(("SPECLI", *path)))
                    assert param.envvar not in seen
                    seen[param.envvar] = command.name
    assert {"SPECLI_BENCH_OUT", "SPECLI_TRACE_OUT", "SPECLI_RUN_RAW", "SPECLI_PULL_JSON"} <= {*seen}


def test_what_can_be_switched_on_for_good_can_be_switched_off_for_now() -> None:
    run: Any = typer.main.get_command(app)
    for param in run.commands["run"].params:
        if option_kinds().get(param.name) is bool:
            assert param.secondary_opts == [f"--no-{param.name.replace('_', '-')}"]


NONE = ("version", "install_completion", "show_completion")  # what they do ends the program
LEVELS = ("flag", "environment", "file", "pair", "default")
VALUES = {
    "draft_tokens": ("1", "2", "3", "4", None),
    "draft": ("none", "ngram", "none", "draft", "ngram"),
    "temp": (0.1, 0.2, 0.3, None, 0.8),
}
CASES = [
    (name, strong, weak)
    for name, values in VALUES.items()
    for i, strong in enumerate(LEVELS)
    for weak in LEVELS[i + 1 :]
    if not (values[3] is None and "pair" in (strong, weak))
]


@pytest.mark.parametrize(("name", "strong", "weak"), CASES)
def test_the_stronger_source_wins(
    specli: Specli,
    tiny: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    strong: str,
    weak: str,
) -> None:
    by_level = dict(zip(LEVELS, VALUES[name], strict=True))
    by_level = {k: str(tiny / "draft.gguf") if v == "draft" else v for k, v in by_level.items()}
    target = tiny / "target.gguf"
    flags: list[object] = []
    top, pair = f"target = {json.dumps(str(target))}\n", ""
    for level in (strong, weak):
        value = by_level[level]
        if level == "flag":
            flags = [f"--{name.replace('_', '-')}", value]
        elif level == "environment":
            monkeypatch.setenv(f"SPECLI_{name.upper()}", str(value))
        elif level == "file":
            top += f"{name} = {value if name != 'draft' else json.dumps(value)}\n"
        elif level == "pair":
            pair = f"{name} = {value if name != 'draft' else json.dumps(value)}\n"
            pair += 'draft = "ngram"\n' if name == "draft_tokens" else ""
            top += 'draft = "ngram"\n' if name == "draft_tokens" else ""
    write(f"{top}\n[pairs.{json.dumps(str(target))}]\n{pair}")
    if strong != "flag":
        said = {"value": by_level[strong], "source": strong}
        assert shown(specli)[name] == said
    if strong in ("flag", "pair"):
        done = specli("run", "hi", "-n", 1, "--json", *flags)
        start = json.loads(done.out.splitlines()[0])
        found = {
            "draft_tokens": str(start["settings"]["k"]),
            "draft": start["draft"],
            "temp": start["settings"]["sampling"]["temperature"],
        }
        value = by_level[strong]
        assert found[name] == (Path(str(value)).stem if name == "draft" else value)


def test_guesses_that_are_asked_for_now_come_before_a_choice_not_to_guess(
    specli: Specli, tiny: Path
) -> None:
    write('draft = "none"\n')
    args = ("run", "hi", "-t", tiny / "target.gguf", "-n", 2, "--json")
    assert json.loads(specli(*args).out.splitlines()[0])["method"] == "none"
    assert json.loads(specli(*args, "-k", 2).out.splitlines()[0])["method"] == "ngram"


BAD: list[tuple[dict[str, str], str, str, int, str]] = [
    ({"SPECLI_TEMP": "hot"}, "", "run hi", 2, "SPECLI_TEMP: 'hot' is not a valid float"),
    ({"SPECLI_TEMP": "-1"}, "", "run hi", 2, "SPECLI_TEMP is -1.0, 0.0 or more is wanted"),
    ({"SPECLI_DRAFT_TOKENS": "many"}, "", "run hi", 2, "SPECLI_DRAFT_TOKENS is many, auto or"),
    ({"SPECLI_JSON": "perhaps"}, "", "chat", 2, "SPECLI_JSON: 'perhaps' is not a valid boolean"),
    ({"SPECLI_BENCH_REPEAT": "0"}, "", "bench", 2, "SPECLI_BENCH_REPEAT: 0 is not in the range"),
    ({"SPECLI_TARGET": "lama-70b"}, "", "run hi", 3, "SPECLI_TARGET: no model is called 'lama-70b"),
    ({"SPECLI_TEMP": "1"}, "", "run hi --temp hot", 2, "Invalid value for '--temp': 'hot' is not"),
    ({"SPECLI_TEMP": "1"}, "temp = 2", "run hi --temp -3", 2, "error: --temp is -3.0, 0.0 or more"),
    ({}, "temp = -2", "run hi", 2, "{file}: temp is -2.0, 0.0 or more is wanted"),
    ({}, "temprature = 1", "run hi", 2, "{file}: temprature is no setting"),
    ({}, 'stats = "yes"', "chat", 2, '{file}: stats is "yes", true or false is wanted'),
    ({}, "draft_tokens = 99", "verify", 2, '{file}: draft_tokens is 99, "auto" or 0 to 64 is'),
    ({}, 'target = "lama-70b"', "run hi", 3, "{file}: target: no model is called 'lama-70b'"),
    ({}, 'draft = "lama-1b"', "run hi", 3, "{file}: draft: no model is called 'lama-1b'"),
    (
        {},
        'pairs.demo.draft = "x-1b"',
        "run hi",
        3,
        '{file}: pairs."demo".draft: no model is called',
    ),
    (
        {},
        'pairs.demo.draft = "/x.gguf"',
        "run hi",
        3,
        '{file}: pairs."demo".draft: /x.gguf: no such',
    ),
    ({}, "pairs.demo.k = 3", "bench", 2, '{file}: pairs."demo": k is no setting'),
    ({}, "[", "trace hi", 2, "{file}: is not valid TOML"),
    ({}, "[", "config", 2, "{file}: is not valid TOML"),
    ({}, "[", "config get temp", 2, "{file}: is not valid TOML"),
    ({}, "[", "config set temp 1", 2, "{file}: is not valid TOML"),
    ({}, "[", "config unset temp", 2, "{file}: is not valid TOML"),
]


@pytest.mark.parametrize(("variables", "text", "args", "code", "said"), BAD)
def test_what_is_wrong_is_called_as_it_was_given(
    specli: Specli,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    text: str,
    args: str,
    code: int,
    said: str,
) -> None:
    write(text)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = specli(*args.split())
    assert (done.code, done.out) == (code, "")
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert said.format(file=config_file()) in errors[0]
    assert config_file().read_text() == text


def test_a_pair_that_cannot_work_is_blamed_on_where_it_was_chosen(
    specli: Specli, tiny: Path
) -> None:
    write(f"draft = {json.dumps(str(tiny / 'renamed.gguf'))}\n")
    done = specli("run", "hi", "-t", tiny / "target.gguf")
    assert done.code == 4
    assert f"error: {config_file()}: draft: " in done.err


def test_help_and_path_need_no_config_that_is_right(specli: Specli) -> None:
    write("[")
    for args in (["--help"], ["run", "--help"], ["config", "--help"], ["--version"], []):
        assert specli(*args).code == 0
    assert specli("config", "path").out == f"{config_file()}\n"
    assert "[env var: SPECLI_TEMP" in " ".join(specli("run", "--help").out.split())


def test_a_flag_says_no_where_the_file_says_yes(specli: Specli, tiny: Path) -> None:
    write("json = true\nforce = true\nstats = false\n")
    args = ("run", "hi", "-t", tiny / "target.gguf", "-n", 2, "--temp", 0)
    assert specli(*args).out.startswith('{"type": "start"')
    done = specli(*args, "--no-json", "--no-force", "--stats")
    assert not done.out.startswith("{")
    assert "tokens at " in done.err


def test_bench_takes_its_drafts_from_a_flag_though_the_file_names_one(
    specli: Specli, tiny: Path, tmp_path: Path
) -> None:
    write(f"draft = {json.dumps(str(tiny / 'draft.gguf'))}\n")
    args = ("bench", "-t", tiny / "target.gguf", "--drafts", "missing-7b", "-n", 2)
    done = specli(*args, "--out", tmp_path / "r.jsonl")
    assert done.code == 3
    assert "error: no model is called 'missing-7b'" in done.err


@pytest.mark.parametrize("command", ["bench", "verify"])
@pytest.mark.parametrize("text", ['stop = "x"', 'draft = "none"', "draft_tokens = 0"])
def test_what_is_chosen_for_answers_does_not_keep_from_measuring(
    specli: Specli, command: str, text: str
) -> None:
    write(f'target = "missing-7b"\n{text}\n')
    done = specli(command)
    assert done.code == 3  # and not 2
    assert f"error: {config_file()}: target: no model is called 'missing-7b'" in done.err


CHANGES: list[tuple[list[str], list[str], Any]] = [
    (["temp", "0.7"], ["temp"], 0.7),
    (["max-tokens", "7"], ["max_tokens"], 7),
    (["gpu_layers", "-1"], ["gpu_layers"], -1),
    (["stats", "false"], ["stats"], False),
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
    found = specli("config", "get", words[0]).out
    assert found == f"{in_words(value) if isinstance(value, bool | int) else found.strip()}\n"
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
    (["set", "pairs.a.draft_tokens", "x"], 2, 'pairs.a.draft_tokens is "x", "auto" or 0 to 64'),
    (["set", "pairs.a", "x"], 2, "pairs.a is a table, one of its keys is wanted"),
    (["set", "pairs", "x"], 2, "pairs is a table, one of its keys is wanted"),
    (["set", "pairs.", "x"], 2, "the name of a target is wanted"),
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
    assert config_file().read_text() == "temp = -5\n"
    monkeypatch.setenv("EDITOR", editor(tmp_path, "[", code=3))
    assert specli("config", "edit").code == 1
    monkeypatch.setenv("EDITOR", os.devnull)
    assert specli("config", "edit").code == 2
