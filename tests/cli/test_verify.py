"""specli verify: what it says of a right verifier, of wrong ones, and when it is stopped."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specli.cli import verify_run
from specli.engine import decode
from specli.verification.equality import compare
from tests.cli.conftest import Result
from tests.faults import Faulty

Specli = Callable[..., Result]


@pytest.fixture
def args(tiny: Path, tmp_path: Path) -> list[object]:
    """The tiny pair, two prompts, few draws."""
    lines = [
        json.dumps({"id": name, "category": name, "text": text})
        for name, text in (("rain", "the rain in the train"), ("again", "a b c a b c a b"))
    ]
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("\n".join(lines))
    return [
        *("verify", "-t", tiny / "target.gguf", "-d", tiny / "draft.gguf", "--threads", 1),
        *("--prompts", prompts, "-n", 24, "--draws", 60, "--seed", 5),
    ]


def test_the_tiny_pair_is_the_same(specli: Specli, args: list[object]) -> None:
    done = specli(*args, "-k", 3)
    assert done.code == 0, done.out
    assert done.out.startswith("The same: 2 greedy answers are equal")
    assert "pair    target, draft draft, k 3, seed 5" in done.out
    assert "60 plain and 60 speculative answers" in done.out
    assert done.err == ""


def test_json(specli: Specli, args: list[object]) -> None:
    done = specli(*args, "--json")
    shown = json.loads(done.out)
    assert (done.code, shown["verdict"], shown["interrupted"]) == (0, "same", False)
    assert [one["id"] for one in shown["greedy"]] == ["rain", "again"]
    assert all(one["compared_n"] == 24 for one in shown["greedy"])
    assert {test["name"] for test in shown["draws"][0]["tests"]} == {
        *("plain against speculative", "leaning to the draft", "sureness")
    }
    assert shown["draws"][0]["draft_n"] > shown["draws"][0]["draft_n_accepted"] > 0
    assert shown["settings"]["seed"] == 5


def test_a_context_without_room_for_a_guess_is_named(specli: Specli, args: list[object]) -> None:
    done = specli(*args, "--ctx", 1)
    assert "Nothing to compare: the context of target holds 1 token" in done.out


def test_a_broken_verifier_is_found_by_its_draws(
    specli: Specli, args: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "verify", Faulty("swaps p and q"))
    done = specli(*args, "-k", 3, "--json")
    shown = json.loads(done.out)
    assert (done.code, shown["verdict"]) == (1, "different")
    first, second = shown["draws"]
    assert second["speculative_n"] == 2 * first["speculative_n"]
    assert not first["passed"]
    assert not second["passed"]
    assert second["oddity"]["id"] in ("rain", "again")


def test_a_broken_verifier_is_found_greedily_and_the_place_is_named(
    specli: Specli, args: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "verify", Faulty("accepts everything"))
    done = specli(*args, "-k", 3, "--temp", 0)
    assert done.code == 1
    assert done.out.startswith("NOT THE SAME: 2 of 2 greedy answers differ.")
    assert "DIFFERENCE at rain, token " in done.out
    assert "draws" not in done.out


def test_ctrl_c_tells_what_is_known(
    specli: Specli, args: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare_and_stop(*given: Any) -> object:
        done = compare(*given)
        signal.raise_signal(signal.SIGINT)
        return done

    monkeypatch.setattr(verify_run, "compare", compare_and_stop)
    done = specli(*args)
    assert done.code == 130
    assert done.out.startswith("Unfinished: no difference so far.")
    assert "1 of 2 prompts" in done.out


@pytest.mark.parametrize("more", [("-d", "none"), ("-k", 0), ("--stop", "x")])
def test_what_cannot_be_compared_is_refused(
    specli: Specli, args: list[object], more: tuple[object, ...]
) -> None:
    done = specli(*args, *more)
    assert done.code == 2
    assert done.err.startswith("error: ")


def test_a_target_that_cannot_speculate_has_nothing_to_compare(
    specli: Specli, args: list[object], tiny: Path
) -> None:
    done = specli(*args, "-t", tiny / "recurrent.gguf", "-d", "ngram")
    assert done.code == 0
    assert done.out.startswith("Nothing to compare: recurrent cannot drop rejected tokens")


def test_too_few_draws_leave_a_question_open(specli: Specli, args: list[object]) -> None:
    done = specli(*args, "--draws", 2, "-k", 3)
    assert done.code == 0
    lines = [line for line in done.out.splitlines() if line.endswith("to find anything")]
    assert lines
    assert all("unknown" in line for line in lines)


def test_a_prompt_that_does_not_fit(specli: Specli, args: list[object]) -> None:
    done = specli(*args, "-c", 8)
    assert done.code == 2
    assert done.err.startswith("error: prompt rain has ")


@pytest.mark.real
def test_the_embedded_pair(specli: Specli, args: list[object]) -> None:
    more = ("-t", "demo", "-d", "ngram", "-k", 4, "-n", 8, "--draws", 0, "--threads", 2)
    done = specli(*args, *more, "--offline")
    assert done.code == 0, done.out
    assert done.out.startswith("The same: 2 greedy answers are equal")
