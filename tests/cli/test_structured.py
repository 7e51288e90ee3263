"""run --json-schema and --grammar."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Result

Specli = Callable[..., Result]
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "n": {"type": "integer", "minimum": 0, "maximum": 9},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
    },
    "required": ["name", "n"],
}


@pytest.mark.parametrize("draft", ["none", "ngram", "draft.gguf", "hopeless.gguf"])
def test_answers_follow_the_schema_whatever_guesses(
    specli: Specli, tiny: Path, tmp_path: Path, draft: str
) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    name = draft if "." not in draft else tiny / draft
    args = ("-t", tiny / "target.gguf", "-d", name, "--temp", 1, "--no-stats", "-k", 4)
    for seed in range(3):
        schema = file if seed else json.dumps(SCHEMA)
        done = specli("run", '{"name": "a" 1', *args, "--seed", seed, "--json-schema", schema)
        assert done.code == 0, done.err
        said = json.loads(done.out)
        assert {"name", "n"} <= said.keys() <= {"name", "n", "tags"}
        assert len(said["name"]) <= 8
        assert said["n"] in range(10)


def test_a_grammar_constrains_a_conversation_too(specli: Specli, tiny: Path) -> None:
    args = ("-t", tiny / "target.gguf", "--no-stats", "--grammar", 'root ::= "yes" | "no"')
    done = specli("chat", *args, stdin=b"hello\nagain\n")
    assert [line in ("yes", "no") for line in done.out.split()] == [True, True]


def test_json_that_was_cut_is_an_error(specli: Specli, tiny: Path, tmp_path: Path) -> None:
    args = ("-t", tiny / "target.gguf", "-n", 3, "--no-stats", "--json-schema", json.dumps(SCHEMA))
    done = specli("run", "hello", *args, "--output", tmp_path / "answer.json")
    assert done.code == 1
    assert done.err.startswith("error: the answer was cut by --max-tokens before its JSON")
    assert not (tmp_path / "answer.json").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--json-schema", "{"], "error: --json-schema is not valid JSON"),
        (["--json-schema", '"type": "object"}'], "error: --json-schema is not valid JSON"),
        (["--json-schema", "type: object"], "error: --json-schema is not valid JSON"),
        (["--json-schema", "none.json"], "error: --json-schema: none.json cannot be read: No such"),
        (["--json-schema", '{"type": "string", "pattern": "a"}'], "/pattern cannot be kept to"),
        (["--grammar", "root ::= x"], "Undefined rule identifier 'x'"),
        (["--grammar", 'root := "a"'], "error: the grammar is not valid GBNF: expecting ::="),
        (["--grammar", '"a" | "b"'], "error: the grammar is not valid GBNF: expecting name"),
        (["--grammar", "/dev/zero"], "error: /dev/zero: is larger than 50 MB"),
        (["--grammar", "none.gbnf"], "error: --grammar: none.gbnf cannot be read: No such file"),
        (["--grammar", "root ::= [a]", "--json-schema", "{}"], "cannot both be kept to"),
    ],
)
def test_what_cannot_be_followed_is_said_before_anything_loads(
    specli: Specli, args: list[str], said: str
) -> None:
    done = specli("run", "hello", "-t", "missing.gguf", *args)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") <= 2
