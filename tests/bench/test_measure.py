"""Contestants side by side: the turns, and that nobody's answer depends on the others."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from specli.assemble import Session
from specli.bench.answering import Answering, answer_all
from specli.bench.contest import AUTO, PLAIN, Contestant, Task
from specli.bench.measure import Machine
from specli.bench.prompts import Prompt
from specli.bench.records import Run
from specli.chat import AnswerEvent, Done
from specli.engine.stats import Stats
from specli.engine.types import Reason, Round
from specli.errors import Interrupted
from specli.models.store import Located

PROMPT = Prompt("p", "code", "one two three one two")
K3 = Contestant("k=3", "fixed", 3, "model")


def test_the_one_with_the_fewest_tokens_goes_on() -> None:
    turns: list[str] = []

    def events(name: str, n: int, reason: Reason = "length") -> Iterator[AnswerEvent]:
        for _ in range(32 // n):
            turns.append(name)
            yield Round((1,) * n, (), n - 1, 0.0, 0.1, 0.0)
        yield Done(reason, Stats("none"))

    def answering(name: str, n: int, reason: Reason = "length") -> Answering:
        return Answering(cast(Session, None), events(name, n, reason))

    slow, fast = answering("slow", 1), answering("fast", 4)
    answer_all([slow, fast])
    assert turns == ([*["slow"] * 8, *["fast"] * 2]) * 4
    assert slow.rounds.n_tokens == (1,) * 32
    assert fast.done
    with pytest.raises(Interrupted):
        answer_all([answering("a", 1), answering("b", 1, "interrupted")])


def machine(tiny: Path) -> Machine:
    target, draft = (Located(name, tiny / f"{name}.gguf") for name in ("target", "draft"))
    return Machine(target, draft, None, 1, 3, {"p": (PROMPT.text, 16)})


def shape(run: Run) -> tuple[object, ...]:
    """Return all of a run that does not depend on time."""
    rounds = run.rounds
    return run.key, run.tokens, run.answer, run.reason, rounds.n_drafted, rounds.n_accepted


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_answer_is_the_same_alone_and_side_by_side(tiny: Path, temperature: float) -> None:
    here = machine(tiny)
    task = Task(PROMPT, temperature, 40, 0)
    plain, k3, auto = here.run_abreast([PLAIN, K3, AUTO], task)
    assert shape(plain) == shape(here.run(PLAIN, task))
    assert shape(k3) == shape(here.run(K3, task))
    assert {run.tokens for run in (plain, k3, auto)} == {40}
    assert plain.draft == "none"
    assert auto.draft == "draft.gguf"
    assert len(plain.answer) == 40
    assert not auto.answer
    assert [run.key for run in (plain, k3)] == [here.key(one, task) for one in (PLAIN, K3)]
    assert plain.seconds == pytest.approx(
        sum(sum(column) for column in (plain.rounds.target_s, plain.rounds.host_s)), rel=0.01
    )
