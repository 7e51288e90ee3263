"""The script that measures answers under schemas: its cases, what is valid, its table."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema

from scripts.schema_check import (
    CASES,
    Group,
    Record,
    invalid,
    read_cases,
    read_records,
    table,
    write,
)
from specli.backend.grammar import check_gbnf
from specli.backend.schema_grammar import schema_to_gbnf

GROUP = Group("enum", "schema", "draft", "default", "t.gguf", "d.gguf", 3, 1)
RECORD = Record(GROUP, 0, '"a"', "eog", "", 10, 8, 6, 4, 1.0, "abc")
FREE = replace(RECORD, group=replace(GROUP, kind="free"), n_drafted=10, n_accepted=5)


def test_every_case_is_a_schema_that_a_grammar_can_keep_to() -> None:
    cases = read_cases(CASES)

    assert len({case.name for case in cases}) == 10
    for case in cases:
        jsonschema.Draft202012Validator.check_schema(case.schema)
        check_gbnf(schema_to_gbnf(json.dumps(case.schema)))


def test_an_answer_is_valid_only_where_it_ended_and_follows_its_schema() -> None:
    schema = {"type": "object", "required": ["a"]}

    assert invalid('{"a": 1}', "eog", schema) == ""
    assert invalid('{"a": 1}', "length", schema) == "not complete: length"
    assert "'a' is a required property" in invalid("{}", "eog", schema)
    assert "Expecting" in invalid('{"a": ', "eog", schema)


def test_the_table_holds_both_acceptance_rates_and_their_ratio() -> None:
    bad = replace(RECORD, n=1, error="not complete: length")

    lines = table([RECORD, bad, FREE]).splitlines()

    assert lines[0] == "### t.gguf, d.gguf, k = 3, filters: default"
    assert lines[-2] == "| enum | 1 of 2 | 20 | 16 | 0.75 | 10 | 10 | 0.50 | 1.50 |"


def test_a_group_that_was_run_again_counts_once(tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    for record in (RECORD, FREE, replace(RECORD, text='"b"')):
        write(record, out, as_json=False)

    assert [record.text for record in read_records(out)] == ['"b"', '"a"']
