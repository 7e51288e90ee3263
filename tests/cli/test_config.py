"""Settings: where they come from, which wins, and how errors name their source."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

from specli.cli.app import app
from specli.cli.options import option_kinds
from specli.cli.sources import keys_of
from specli.cli.variables import commands_of
from specli.config import config_file
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


def test_a_byte_order_mark_is_no_statement(specli: Specli) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_bytes(b"\xef\xbb\xbftemp = 0.25\n")
    assert specli("config", "get", "temp").out == "0.25\n"
    assert specli("config", "set", "seed", "3").code == 0
    assert specli("config", "get", "seed").out == "3\n"
