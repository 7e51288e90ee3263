"""Real runs: every one cold, and every record true to itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from platformdirs import user_cache_path

from specli.bench.contest import Contestant
from specli.bench.prompts import Prompt
from specli.bench.records import Run
from specli.bench.schedule import Schedule, contestants
from specli.bench.trial import Bench, hold
from specli.engine.costs import N_MAX
from specli.loaded import load_models
from specli.models.store import Located
from specli.settings import SamplingSettings, Settings

SETTINGS = Settings(seed=3, n_threads=1, n_ctx=512)
COSTS, CHEAP = {1: 0.01, 64: 0.011}, {1: 1e-5, 64: 2e-5}  # so that auto guesses
PROMPTS = Prompt("p", "code", "one two three one two"), Prompt("q", "chat", "hello there")
PLAIN, AUTO = contestants(["draft"], None)
K3 = Contestant("k=3", "fixed", 3, "draft")


@contextmanager
def opened(target: Path, draft: Path | str, settings: Settings = SETTINGS) -> Iterator[Bench]:
    guess = Located(draft.stem, draft) if isinstance(draft, Path) else draft
    located = [guess] if isinstance(guess, Located) else []
    with load_models(Located(target.stem, target), located, settings, N_MAX) as models:
        costs = {"draft": CHEAP} if located else {}
        drafts = {"draft": guess}
        yield Bench(models, Located("t", target), drafts, settings, "", COSTS, costs, 0.0, 0.0)


def shape(run: Run) -> tuple[object, ...]:
    """Return all of a run that does not depend on time."""
    rounds = run.rounds
    counts = rounds.n_drafted, rounds.n_accepted, rounds.n_tokens, rounds.sources
    names = "cache_n", "prompt_n", "draft_n", "draft_n_accepted", "predicted_n"
    return (*counts, *(run.stats[name] for name in names), run.answer, run.reason)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_second_run_finds_nothing_of_the_first(tiny: Path, temperature: float) -> None:
    with opened(tiny / "target.gguf", tiny / "draft.gguf") as bench:
        first = bench.run(K3, PROMPTS[0], temperature, 40, 0)
        bench.run(K3, PROMPTS[1], temperature, 40, 0)
        bench.run(PLAIN, PROMPTS[0], temperature, 40, 0)
        second = bench.run(K3, PROMPTS[0], temperature, 40, 0)
    assert shape(first) == shape(second)
    assert first.stats["cache_n"] == second.stats["cache_n"] == 0
    assert first.stats["prompt_n"] == first.prompt_n > 5
    assert first.stats["draft_n"] > 20


def test_ngrams_of_one_run_are_not_known_to_the_next(tiny: Path) -> None:
    with opened(tiny / "target.gguf", "ngram") as bench:
        runs = [bench.run(K3, PROMPTS[0], 0.0, 60, 0) for _ in range(2)]
    assert shape(runs[0]) == shape(runs[1])
    assert runs[0].stats["draft_n"] > 0


def test_the_planner_of_every_run_begins_with_the_same_and_keeps_nothing(tiny: Path) -> None:
    with opened(tiny / "target.gguf", tiny / "draft.gguf") as bench:
        begins = []

        def look() -> None:
            run = bench.run(AUTO, PROMPTS[0], 0.0, 30, 0)
            known = bench.learned("draft", SamplingSettings(0.0)).acceptance
            begins.append({name: one.known() for name, one in known.items()})
            assert run.stats["draft_n"] > 0

        look()
        look()
        assert begins[0] == begins[1]
    assert not list(user_cache_path("specli").rglob("*.json"))


def test_the_seed_of_a_repeat_is_its_own(tiny: Path) -> None:
    with opened(tiny / "target.gguf", tiny / "draft.gguf") as bench:
        runs = [bench.run(PLAIN, PROMPTS[0], 1.0, 20, repeat) for repeat in range(2)]
    assert [run.seed for run in runs] == [3, 4]
    assert runs[0].answer != runs[1].answer


def check_invariants(run: Run) -> None:
    """Hold what is true of every record, of whatever model and settings."""
    rounds, stats = run.rounds, run.stats
    n_cut = stats["draft_rounds"] + stats["draft_n_accepted"] - stats["predicted_n"]
    assert n_cut == 0 or (run.reason == "stop" and n_cut == 1)
    assert run.tokens == stats["predicted_n"] == sum(rounds.n_tokens)
    assert stats["draft_rounds"] == len(rounds.n_tokens)
    assert stats["draft_n"] == sum(rounds.n_drafted)
    assert stats["draft_n_accepted"] == sum(rounds.n_accepted)
    assert stats["plain_rounds"] == rounds.n_drafted.count(0)
    assert stats["cache_n"] == 0
    assert run.prompt_n == stats["prompt_n"]
    assert len({len(column) for column in (rounds.n_tokens, rounds.draft_s, rounds.sources)}) == 1
    for n_drafted, n_accepted, n_tokens, source in zip(
        rounds.n_drafted, rounds.n_accepted, rounds.n_tokens, rounds.sources, strict=True
    ):
        assert 0 <= n_accepted <= n_drafted == len(source)
        assert n_tokens in (n_accepted, n_accepted + 1)
    for name in ("draft", "target", "host"):
        total = sum(getattr(rounds, f"{name}_s"))
        assert total * 1000 == pytest.approx(stats[f"{name}_ms"], abs=0.001 * len(rounds.n_tokens))
    assert run.seconds * 1000 == pytest.approx(stats["predicted_ms"], abs=0.001)
    assert (run.contestant == "plain") == bool(run.answer)


@pytest.mark.real
def test_the_invariants_hold_in_every_record_of_a_real_run(smollm2: Path) -> None:
    settings = Settings(seed=1, n_ctx=512, stops=("can I",))
    runs: list[Run] = []
    with opened(smollm2, smollm2, settings) as bench:
        some = PLAIN, AUTO, K3
        hold(Schedule(some, PROMPTS[1:], (0.0,), 20, 1), bench, runs.append, lambda *_: None)
    assert [run.reason for run in runs] == ["stop"] * 3
    for run in runs:
        check_invariants(run)


def test_the_invariants_hold_where_nothing_stops(tiny: Path) -> None:
    runs: list[Run] = []
    with opened(tiny / "target.gguf", tiny / "draft.gguf") as bench:
        hold(
            Schedule((PLAIN, AUTO, K3), PROMPTS, (0.0,), 40, 2), bench, runs.append, lambda *_: None
        )
    assert len(runs) == 12
    assert {run.reason for run in runs} == {"length"}
    for run in runs:
        check_invariants(run)


def test_a_deadline_ends_it_between_parts(tiny: Path) -> None:
    runs: list[Run] = []
    with opened(tiny / "target.gguf", "ngram") as bench:  # it began an eternity ago
        whole = hold(
            Schedule((PLAIN, AUTO), PROMPTS, (0.0,), 4, None),
            bench,
            runs.append,
            lambda *_: None,
            1.0,
        )
    assert not whole
    assert [run.contestant for run in runs] == ["plain", "auto"]  # the first part always runs


def test_a_model_without_a_template_reads_the_prompt_itself(tiny: Path) -> None:
    with opened(tiny / "no_template.gguf", "ngram") as bench:
        assert bench.text(PROMPTS[0]) == PROMPTS[0].text
