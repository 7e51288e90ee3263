"""Contests with a runner of known speeds: who runs, what is kept, what the page says."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from specli.bench.clairvoyant import Costs
from specli.bench.contest import (
    AUTO,
    PLAIN,
    Contest,
    Contestant,
    Entry,
    Plan,
    Task,
    entries,
    rotated,
)
from specli.bench.prompts import Prompt
from specli.bench.record_files import Recorder, load
from specli.bench.records import Foresight, ModelFile, Passes, Records, Rounds, Run, Setup
from specli.bench.report import report, row
from specli.errors import UsageError

FILES = ModelFile("t.gguf", 2000), (ModelFile("d.gguf", 500),)
SETUP = Setup("CPU", 2, 2, "0.1", "abc", "llama 1", *FILES, "run it", peer="0.5")
PROMPTS = tuple(Prompt(f"{c}-{i}", c, "...") for c in ("code", "story") for i in (1, 2, 3))
PLAN = Plan(entries([1, 2, 3, 4, 6], True, []), PROMPTS, ("code",), (0.0, 1.0), 2, 200, 1, 7, False)


def rounds(n: int, seconds: Sequence[float]) -> Rounds:
    """Return rounds of n tokens each."""
    of, none = len(seconds), (0.0,) * len(seconds)
    return Rounds((n - 1,) * of, (n - 1,) * of, (n,) * of, none, tuple(seconds), none, ("",) * of)


# auto needs 64 tokens to find out that it is four times as fast.
ROUNDS = {"plain": rounds(1, [0.1] * 200), "auto": rounds(4, [0.4] * 16 + [0.1] * 34)}


class FakeRunner:
    """plain makes 10 tokens a second, auto 20, k=N 10 + N, a peer 10 + n_max + p_min."""

    def __init__(self, breaks_after: int = 10**6) -> None:
        self.calls: list[tuple[str, str, int]] = []
        self.abreast: list[list[str]] = []
        self._breaks_after = breaks_after

    def run(self, entry: Entry, task: Task) -> Run:
        prompt, max_tokens = task.prompt, task.max_tokens
        if len(self.calls) == self._breaks_after:
            raise KeyboardInterrupt
        self.calls.append((entry.name, prompt.id, max_tokens))
        speed = 10.0
        if entry.group == "auto":
            speed = 20.0
        elif entry.group == "fixed":
            speed += float(entry.name.removeprefix("k="))
        elif entry.group == "peer":
            n_max, p_min = (float(part.split("=")[1]) for part in entry.name.split()[1:])
            speed += n_max / 10 + p_min
        return Run(
            *(entry.name, prompt.category, prompt.id, "sha", 5),
            *(task.temperature, 7, max_tokens, task.repeat),
            tokens=max_tokens,
            seconds=max_tokens / speed,
            answer=(1, 2, 3) if entry == PLAIN else (),
            rounds=ROUNDS.get(entry.group, Rounds()),
        )

    def run_abreast(self, contestants: Sequence[Contestant], task: Task) -> list[Run]:
        self.abreast.append([one.name for one in contestants])
        return [self.run(one, task) for one in contestants]

    def key(self, entry: Entry, task: Task) -> tuple[object, ...]:
        of = task.temperature, 7, task.max_tokens, task.repeat
        return (entry.name, task.prompt.id, "sha", *of)

    def passes(self, plain: Run) -> Passes:
        return Passes(plain.category, {1: 0.1, 2: 0.1, 4: 0.1}, 0.01)

    def foresee(self, plain: Run) -> Foresight:
        return Foresight(
            plain.category, plain.prompt_id, plain.max_tokens, (0, 0, 0, 0), (3, 2, 1, 0)
        )


def hold(path: Path, runner: FakeRunner, plan: Plan = PLAN) -> list[tuple[str, int]]:
    told: list[tuple[str, int]] = []
    known = load(path) if path.exists() else Records()
    Contest(
        plan, runner, Recorder(path, SETUP), list(known.all), lambda *what: told.append(what)
    ).hold()
    return told


def test_the_best_of_the_first_prompt_answer_the_others(tmp_path: Path) -> None:
    runner = FakeRunner()
    told = hold(tmp_path / "r.jsonl", runner)
    first = [name for name, prompt, _ in runner.calls if prompt == "code-1"]
    assert len(first) == (2 + 5 + 20) * 2
    others = {name for name, prompt, _ in runner.calls if prompt == "code-2"}
    assert others == {
        *("plain", "auto", "k=4", "k=6", "peer n_max=16 p_min=0.75"),
        *("peer n_max=16 p_min=0.5", "peer n_max=12 p_min=0.75"),
    }
    assert sum(n for _, n in told) == PLAN.n_tokens()


def test_all_run_to_the_end_in_full(tmp_path: Path) -> None:
    runner = FakeRunner()
    plan = Plan(PLAN.entries, PROMPTS, ("code", "story"), (0.0,), 1, 200, 2, 7, True)
    hold(tmp_path / "r.jsonl", runner, plan)
    assert len(runner.calls) == 27 * 2 * 2
    assert {n for _, _, n in runner.calls} == {200}


def test_an_interrupted_contest_goes_on(tmp_path: Path) -> None:
    whole, path = FakeRunner(), tmp_path / "r.jsonl"
    hold(tmp_path / "whole.jsonl", whole)
    first, second = FakeRunner(breaks_after=60), FakeRunner()
    with pytest.raises(KeyboardInterrupt):
        hold(path, first)
    told = hold(path, second)
    assert first.calls + second.calls == whole.calls
    assert sum(n for _, n in told) == PLAN.n_tokens()
    assert load(path).all == load(tmp_path / "whole.jsonl").all


def test_our_own_contestants_answer_side_by_side(tmp_path: Path) -> None:
    plan = replace(
        PLAN, entries=entries([2], True, ["plain", "auto", "k=2", "peer n_max=1 p_min=0"])
    )
    plan = replace(plan, temperatures=(0.0,), full=True, abreast=True)
    path, runner = tmp_path / "r.jsonl", FakeRunner(breaks_after=6)
    with pytest.raises(KeyboardInterrupt):  # in the midst of the second prompt
        hold(path, runner, plan)
    assert runner.abreast == [["plain", "auto", "k=2"], ["auto", "k=2", "plain"]]
    assert [name for name, _, _ in runner.calls] == [
        *("plain", "auto", "k=2", "peer n_max=1 p_min=0", "auto", "k=2")
    ]
    assert len(load(path).all) == 6  # of the first prompt, with passes and foresight
    second = FakeRunner()
    told = hold(path, second, plan)
    assert second.abreast == [["auto", "k=2", "plain"]]
    assert sum(n for _, n in told) == plan.n_tokens()
    third = FakeRunner()
    hold(path, third, plan)
    assert not third.calls


def test_the_order_rotates() -> None:
    assert rotated([1, 2, 3], 4) == [2, 3, 1]
    assert rotated([], 4) == []


def test_only_some_run() -> None:
    assert entries([1, 16], True, ["plain", "auto"]) == (PLAIN, AUTO)
    assert [entry.name for entry in entries([1, 16], False, ["k=1"])] == ["k=1"]
    assert len(entries([1, 16], True, ["fixed", "peer"])) == 22
    with pytest.raises(UsageError, match="--only peer"):
        entries([1], False, ["peer"])


def test_the_page_tells_who_won(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    hold(path, FakeRunner())
    page = report("name", load(path))
    cells = (
        "| code | 10.00 | 20.00 | 2.00 | k=6 | 16.00 | 1.25 | n_max=16 p_min=0.75 | 12.35 | 1.62 |"
    )
    assert f"{cells} 4.00 | 0.50 | 0.98 | 4.00 | - |" in page
    assert f"{cells} - | - | - | 4.00 | - |" in page  # temperature 1 has no bound
    assert "| geometric mean | 10.00 | 20.00 | 2.00 |  | 16.00 | 1.25 |  | 12.35 | 1.62 |" in page
    assert "run it" in page
    assert "| of one row | 1.00 | 1.00 | 1.00 |" in page
    complete, first = page.split("On that one, t/s:")[0], page.split("On that one, t/s:")[1]
    assert "k=2 |" not in complete
    assert "| k=2 | 12.00 |" in first
    assert page.count("On that one") == 2  # at each temperature


def test_the_page_leaves_open_what_did_not_run(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    plan = Plan(entries([3], False, ["fixed"]), PROMPTS, ("code",), (1.0,), 1, 9, 1, 7, False)
    hold(path, FakeRunner(), plan)
    line = "| code | - | - | - | k=3 | 13.00 | - | - | - | - | - | - | - | - | - |"
    assert line in report("name", load(path))
    path.write_text("")
    with pytest.raises(UsageError, match="no runs"):
        report("name", load(path))


def test_auto_is_compared_with_its_own_plain_rounds() -> None:
    plain, fast = rounds(1, [0.1] * 20), rounds(2, [0.1] * 40)
    columns = (getattr(plain, name) + getattr(fast, name) for name in Rounds.__slots__)
    answer = "auto", "code", "code-1", "sha", 5, 1.0, 7, 100, 0
    run = Run(*answer, tokens=100, seconds=6.0, rounds=Rounds(*columns))
    assert row("code", [run], None, {}).own == pytest.approx(100 / 60)
    slow = replace(run, prompt_id="code-2", seconds=24.0)
    assert row("code", [run, slow], None, {}).own == pytest.approx((100 / 60 * 100 / 240) ** 0.5)
    assert row("code", [run, replace(slow, rounds=fast)], None, {}).own is None
    assert row("code", [replace(run, rounds=replace(run.rounds, host_s=()))], None, {}).own is None


def test_later_tokens_are_compared_with_the_plain_answer_of_their_seed() -> None:
    def answer(contestant: str, seed: int, seconds: Sequence[float]) -> Run:
        key = contestant, "code", "code-1", "sha", 5, 1.0, seed, 200, 0
        return Run(*key, tokens=len(seconds), seconds=sum(seconds), rounds=rounds(1, seconds))

    slow, fast, short = [0.1] * 64 + [0.2] * 9, [0.1] * 64 + [0.1] * 30, [0.1] * 13
    runs = [answer("plain", 1, slow), answer("auto", 1, fast)]
    assert row("code", runs, None, {}).later == pytest.approx(2.0)
    # The plain answer of another seed ended before there was anything to compare.
    runs += [answer("plain", 2, short), answer("auto", 2, slow)]
    assert row("code", runs, None, {}).later == pytest.approx(2.0)
    assert row("code", runs[2:], None, {}).later is None


def test_the_bound_is_reckoned_by_what_the_decodes_of_auto_took() -> None:
    """All of them twice as long as those that were measured, of the draft as long as these."""
    costs = Costs({1: 0.1, 3: 0.2}, 0.01)
    foresight = Foresight("code", "code-1", 4, (2, 1, 0, 0), (0, 0, 0, 0))
    answer = "auto", "code", "code-1", "sha", 5, 0.0, 7, 4, 0
    run = Run(*answer, tokens=4, seconds=1.0, rounds=rounds(1, [0.2] * 4))
    one = row("code", [run], costs, {"code-1": foresight})
    assert one.decoded == pytest.approx((0.4 + 2 * 0.01 + 0.2) / 1.0)
    short = replace(run, tokens=2, seconds=0.5)  # it ended sooner
    assert row("code", [short], costs, {"code-1": foresight}).decoded == pytest.approx(one.decoded)
    unknown = replace(run, rounds=replace(run.rounds, n_drafted=()))
    unanswered = replace(run, contestant="plain", prompt_id="code-2")
    of_both = {"code-1": foresight, "code-2": foresight}
    odd = replace(run, rounds=replace(run.rounds, target_s=(0.0,) * 4))
    for some in ([replace(run, temperature=1.0)], [unknown], [odd], [run, unanswered]):
        assert row("code", some, costs, of_both).decoded is None


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for line in ("{", "[]", "{}", '{"schema": 2}', '{"schema": 1, "kind": "run", "setup": {}}'):
        path.write_text(line + "\n")
        with pytest.raises(UsageError, match="line 1: is no record"):
            load(path)
