"""What is written of thoughts where no terminal is."""

import json
from dataclasses import replace

import pytest

from specli.chat import Done, Text
from specli.cli.output import HumanOutput, JsonOutput, Output
from specli.cli.stats_words import in_words
from specli.cli.status_line import numbers
from specli.engine.stats import Stats
from specli.engine.types import Costs

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


def test_without_a_guess_no_gain_is_told() -> None:
    costs = Costs({1: 0.3}, 0.0)
    idle = Stats("ngram", predicted_n=4, target_s=1.0, draft_rounds=4, costs=costs)
    busy = replace(idle, draft_n=2, draft_n_accepted=1, draft_rounds=3)
    assert "beside plain" not in in_words(idle, "eog")
    assert in_words(busy, "eog")["beside plain"] == "about 1.2 times as fast"
    assert not any("plain" in part for part in numbers(idle, 0, 4, 64, "ngram"))
    assert "1.2x plain" in numbers(busy, 1, 4, 64, "ngram")
