"""What is written of thoughts where no terminal is."""

import json

import pytest

from specli.chat import Done, Text
from specli.cli.output import HumanOutput, JsonOutput, Output
from specli.engine.stats import Stats

EVENTS = (
    Text("Let me", False, thought=True),
    Text(" see.", False, thought=True),
    Text("It is so.", False),
    Done("eog", Stats("none")),
)


@pytest.mark.parametrize(
    ("think", "written"),
    [("hide", "It is so."), ("off", "It is so."), ("show", "Let me see.\n\nIt is so.")],
)
def test_thoughts_in_a_pipe(
    think: str, written: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    show(HumanOutput(with_stats=False, ends_lines=False, think=think))
    assert capfdbinary.readouterr().out.decode() == written


def test_thoughts_as_json_are_told_apart(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    show(JsonOutput())
    *texts, _ = map(json.loads, capfdbinary.readouterr().out.splitlines())
    assert [text.get("thought", False) for text in texts] == [True, True, False]


def show(output: Output) -> None:
    for event in EVENTS:
        output.event(event)
    output.close()
