"""specli bench: measured, shown, kept, compared, interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from platformdirs import user_cache_path, user_data_path

from specli.bench.record_files import load
from specli.bench.records import Records
from specli.cli.bench_plan import labelled
from specli.cli.bench_run import choice_of
from specli.config import PairChoice, config_file, load_config
from specli.config_edit import save_pair
from specli.models.registry import load_registry
from specli.models.store import Located
from tests.bench.test_summary import PLAIN, runs
from tests.bench.test_trial import check_invariants
from tests.cli.conftest import Result, files_of

Specli = Callable[..., Result]
PROMPTS = "".join(
    f'{{"id": "{name}", "category": "{category}", "text": "{name} {name} one two one two"}}\n'
    for name, category in (("a", "code"), ("b", "code"), ("c", "chat"))
)


@pytest.fixture
def few(tiny: Path, tmp_path: Path) -> list[object]:
    """Return the options of a benchmark that takes no time."""
    (tmp_path / "prompts.jsonl").write_text(PROMPTS)
    options = ["bench", "-t", tiny / "target.gguf", "-n", 12, "--threads", 1, "--ctx", 512]
    return [*options, "--prompts", tmp_path / "prompts.jsonl"]


def records(folder: Path, name: str = "r.jsonl") -> Records:
    return load(folder / name)


def test_the_answer_on_the_screen_and_the_records(
    specli: Specli, tiny: Path, tmp_path: Path, few: list[object]
) -> None:
    args = ("-d", tiny / "draft.gguf", "--temps", "0,1", "--out", tmp_path / "r.jsonl")
    done = specli(*few, *args)
    assert done.code == 0
    for said in ("temperature 0\n", "temperature 1\n", "code", "chat", "time of auto: draft"):
        assert said in done.out
    lines = [line for line in done.out.splitlines() if ": specli " not in line]  # commands
    assert lines[0].endswith("; target target.gguf")
    assert lines[1] == "draft draft"
    assert lines[5].startswith("category  plain/s  auto/s  ratio")
    assert max(map(len, lines)) <= 80
    assert done.err == f"records: {tmp_path / 'r.jsonl'}\n"
    found = records(tmp_path)
    assert found.setup
    assert [f.name for f in (found.setup.target, *found.setup.drafts)] == [
        "target.gguf",
        "draft.gguf",
    ]
    assert found.setup.target.weights_bytes > 100_000
    assert len(found.setup.target.sha256) == 64
    assert "prompts.jsonl" in found.setup.command
    assert str(tmp_path) not in found.setup.command
    (passes,) = found.passes()
    assert {1, 8} <= passes.target_s.keys()
    assert (passes.draft, passes.draft_s > 0) == ("draft", True)
    runs = list(found.runs())
    assert len(runs) == 3 * 2 * 3 * 2  # prompts, temperatures, repeats, contestants
    for run in runs:
        check_invariants(run)
    assert [run.at_s for run in runs] == sorted(run.at_s for run in runs)
    kept = [json.loads(p.read_text())["learned"] for p in user_cache_path().rglob("*.json")]
    assert all(learned.keys() == {"sha256"} for learned in kept)  # a benchmark teaches nothing


def test_json_is_the_records_and_the_default_file_is_in_the_data_folder(
    specli: Specli, few: list[object]
) -> None:
    done = specli(*few, "--json", "-k", 3, "--categories", "code", "--repeat", 1)
    assert done.code == 0
    (path,) = (user_data_path("specli") / "bench").iterdir()
    assert done.out == path.read_text()
    kinds = [json.loads(line)["kind"] for line in done.out.splitlines()]
    assert kinds == ["setup", "passes", *["run"] * 4]


def test_who_has_no_draft_is_told_of_one(specli: Specli, tiny: Path, few: list[object]) -> None:
    once = "--repeat", 1, "--per-category", 1, "--temp", 0
    told = "no model guessed; this makes one: specli derive"
    done = specli(*few, *once, "-d", "ngram")
    assert done.out.endswith(f"{told} {tiny / 'target.gguf'}\n")
    assert told not in specli(*few, *once, "-d", tiny / "draft.gguf").out


def test_who_has_a_large_draft_is_told_of_a_smaller_one(
    specli: Specli, tiny: Path, tmp_path: Path, few: list[object]
) -> None:
    once = "--repeat", 1, "--per-category", 1, "--temp", 0
    told = "in fewer bits draft may guess faster: specli derive"
    large, small = tiny / "draft.gguf", tmp_path / "small.gguf"
    assert specli(*few, *once, "-d", large).out.endswith(f"{told} {large}\n")
    assert specli("derive", large, "-o", small).code == 0
    assert told not in specli(*few, *once, "-d", large, "--no-requantize-draft").out
    for drafts in (f"{small}", f"{large},{small}"):  # that was tried, or is tried here
        assert told not in specli(*few, *once, "--drafts", drafts).out


def test_a_draft_that_was_not_named_is_told_of_by_what_names_it() -> None:
    file = Located("guesser", Path("/models/guesser.gguf"))
    known = replace(file, entry=load_registry()["llama-1b"], name="llama-1b")
    for draft, reference in ((file, "/models/guesser.gguf"), (known, "llama-1b")):
        assert labelled([None], [draft])[1] == {draft.name: reference}


def test_a_model_that_is_called_like_n_grams_is_another_draft(
    specli: Specli, tiny: Path, tmp_path: Path, few: list[object]
) -> None:
    model = tmp_path / "ngram.gguf"
    model.symlink_to(tiny / "draft.gguf")
    once = "--repeat", 1, "--per-category", 1, "--temp", 0, "--out", tmp_path / "r.jsonl"
    assert specli(*few, *once, "--drafts", f"{model},ngram").code == 0
    assert {run.draft for run in records(tmp_path).runs()} == {str(model), "ngram", "none"}


def test_drafts_and_ks_are_compared_and_the_best_is_kept(
    specli: Specli, tiny: Path, tmp_path: Path, few: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny)
    drafts = "draft.gguf,auto,hopeless.gguf"
    args = ("--drafts", drafts, "--sweep-k", "--repeat", 1, "--per-category", 1, "--temp", 0)
    done = specli(*few, *args, "--save", "--out", tmp_path / "r.jsonl")
    assert done.code == 0
    for draft in ("draft", "ngram", "hopeless"):
        assert f"\n{draft}\n  auto " in done.out
    assert done.out.count("\n  k=16 ") == 3
    assert len(list(records(tmp_path).runs())) == 2 * (1 + 3 * 9)
    saved = load_config().pairs
    if "saved: nothing" in done.err:  # as the machine's noise will have it
        assert "keep:" not in done.out
        assert not saved
    else:
        assert saved.keys() == {str(tiny / "target.gguf")}


def test_what_is_kept_is_clear_and_means_the_same_everywhere() -> None:
    told = {"d": "/models/d.gguf"}

    def kept(*ratios: float) -> PairChoice | None:
        speeds = {category: [10.0 * ratio for ratio in ratios] for category in PLAIN}
        return choice_of([*runs(PLAIN), *runs(speeds, "k=3", "d")], told)

    assert kept(2.0, 2.02) == PairChoice("/models/d.gguf", "3")
    assert kept(0.5, 0.51) == PairChoice("none", "auto")
    assert kept(0.5, 2.0) is None


@pytest.mark.parametrize(
    ("flags", "method", "k"),
    [
        ([], "draft", 2),
        (["-k", "auto"], "both", None),
        (["-d", "ngram"], "ngram", None),  # the number was chosen for the other draft
        (["-d", "none"], "none", None),
    ],
)
def test_a_flag_comes_before_the_file_and_the_file_before_the_default(
    specli: Specli, tiny: Path, flags: list[str], method: str, k: int | None
) -> None:
    save_pair(str(tiny / "target.gguf"), PairChoice(str(tiny / "draft.gguf"), "2"))
    args = ("run", "hi", "-t", tiny / "target.gguf", "-n", 3, "--json", *flags)
    start = json.loads(specli(*args).out.splitlines()[0])
    assert (start["method"], start["settings"]["k"]) == (method, k)


def test_who_asks_for_guesses_gets_them_whatever_was_chosen(specli: Specli, tiny: Path) -> None:
    save_pair(str(tiny / "target.gguf"), PairChoice("none", "auto"))
    args = ("run", "hi", "-t", tiny / "target.gguf", "-n", 3, "--json")
    off, on = specli(*args), specli(*args, "-k", 4)
    assert json.loads(off.out.splitlines()[0])["method"] == "none"
    assert "hint: config.toml says not to speculate here" in off.err
    assert json.loads(on.out.splitlines()[0])["method"] == "ngram"
    assert on.err == ""


def test_bench_and_chat_take_what_was_chosen_too(
    specli: Specli, tiny: Path, tmp_path: Path, few: list[object]
) -> None:
    save_pair(str(tiny / "target.gguf"), PairChoice(str(tiny / "draft.gguf"), "2"))
    specli(*few, "--repeat", 1, "--out", tmp_path / "r.jsonl")
    assert {run.contestant for run in records(tmp_path).runs()} == {"plain", "k=2"}
    talk = specli("chat", "-t", tiny / "target.gguf", "-n", 3, "--json", stdin=b"hi\n")
    assert json.loads(talk.out.splitlines()[0])["settings"]["k"] == 2


def test_that_plain_decoding_was_chosen_can_be_found_wrong_again(
    specli: Specli, tiny: Path, tmp_path: Path, few: list[object]
) -> None:
    save_pair(str(tiny / "target.gguf"), PairChoice("none", "auto"))
    for name, more in (("a", ()), ("b", ("--drafts", "auto"))):
        done = specli(*few, "--repeat", 1, *more, "--out", tmp_path / f"{name}.jsonl")
        assert done.code == 0
        assert {r.draft for r in records(tmp_path, f"{name}.jsonl").runs()} == {"none", "ngram"}


def test_a_broken_config_is_one_line(specli: Specli, tiny: Path) -> None:
    config_file().parent.mkdir(parents=True)
    config_file().write_text("pairs = 3")
    done = specli("run", "hi", "-t", tiny / "target.gguf")
    assert done.code == 2
    assert f"error: {config_file()}: pairs is 3, a table is wanted" in done.err


def test_quick_says_what_it_leaves_out_and_duration_goes_on(
    specli: Specli, tmp_path: Path, few: list[object]
) -> None:
    done = specli(*few, "--quick", "-n", 5, "--out", tmp_path / "q.jsonl")
    assert "quick: 3 of 3 prompts up to 6 times each, 5 tokens an answer" in done.err
    done = specli(*few, "--duration", 0.02, "--out", tmp_path / "d.jsonl")
    assert done.code == 0
    assert len(list(records(tmp_path, "d.jsonl").runs())) >= 2


def test_two_benchmarks_are_compared(specli: Specli, tmp_path: Path, few: list[object]) -> None:
    for name, more in (("a", ("--top-k", 7)), ("b", ())):
        specli(*few, "--repeat", 1, *more, "--out", tmp_path / f"{name}.jsonl")
    done = specli("bench", "compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert done.code == 0
    assert done.out.startswith("temperature 0.8, tokens per second: median (min to max)\n")
    assert "warning: not the same in both: sampling: " in done.err
    said = specli("bench", "compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--json").out
    differences = json.loads(said)["differences"]
    assert {(d["category"], d["contestant"]) for d in differences} == {
        (category, name) for category in ("code", "chat") for name in ("plain", "auto")
    }
    assert all(d["ratio"] > 0 for d in differences)


def test_ctrl_c_keeps_the_finished_runs_and_shows_their_table(
    tmp_path: Path, few: list[object]
) -> None:
    out = tmp_path / "r.jsonl"
    command = [sys.executable, "-m", "specli", *map(str, few), "--repeat", "100000"]
    with subprocess.Popen(
        [*command, "--out", str(out), "--save"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
        text=True,
    ) as process:
        while process.poll() is None and not (out.exists() and len(load(out).all) > 10):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "category" in said
    assert "times as fast as plain decoding" in " ".join(said.split())
    assert err == f"records: {out}\nsaved: nothing, as it was stopped\n"
    for run in load(out).runs():
        check_invariants(run)
    assert not config_file().exists()  # of part of a benchmark nothing is kept for good


def test_a_full_disk_ends_it_with_the_table_of_what_is_done(
    specli: Specli, tmp_path: Path, few: list[object]
) -> None:
    out = tmp_path / "r.jsonl"
    with files_of(12_000):
        done = specli(*few, "--repeat", "100000", "--out", out, "--save")
    assert done.code == 1
    assert "category" in done.out
    assert f"error: {out}: cannot be written: File too large" in done.err
    for run in load(out).runs():
        check_invariants(run)
    assert out.read_bytes().endswith(b"\n")
    assert not config_file().exists()


def test_a_full_disk_leaves_no_empty_file(
    specli: Specli, tmp_path: Path, few: list[object]
) -> None:
    out = tmp_path / "r.jsonl"
    with files_of(1000):
        done = specli(*few, "--out", out)
    assert done.code == 1
    assert done.err.endswith(f"error: {out}: cannot be written: File too large\n")
    assert "records:" not in done.err
    assert not out.exists()


BAD = [
    (["-d", "none"], 2, "without a draft there is nothing to compare"),
    (["-k", "0"], 2, "--draft-tokens is 0, which leaves nothing to compare"),
    (["-n", "0"], 2, "--max-tokens is 0, which leaves nothing to compare"),
    (["--temps", ""], 2, "--temps is empty"),
    (["--temps", "hot"], 2, "--temps is hot, numbers with commas between are wanted"),
    (["--temps", "0,-1"], 2, "--temp is -1.0"),
    (["--ks", "3,many"], 2, "--ks is 3,many, numbers from 1 to 64 with commas between are wanted"),
    (["--ks", "0"], 2, "--ks is 0"),
    (["--ks", ","], 2, "--ks is ,"),
    (["--ks", "3,\u0663"], 2, "--ks is 3,\u0663, numbers from 1 to 64"),
    (["--ks", "1_0"], 2, "--ks is 1_0, numbers from 1 to 64"),
    (["--ks", "9" * 5000], 2, f"--ks is {'9' * 56} ..., numbers from 1 to 64"),
    (["--ks", "3", "--sweep-k"], 2, "--ks and --sweep-k exclude each other"),
    (["--categories", "poems"], 2, "no prompt is of poems"),
    (["--categories", ","], 2, "no prompt is of none"),
    (["--drafts", ","], 2, "--drafts is empty"),
    (["--drafts", "ngram", "-d", "ngram"], 2, "--draft and --drafts exclude each other"),
    (["--quick", "--duration", "3"], 2, "--quick and --duration exclude each other"),
    (["--duration", "-3"], 2, "--duration is -3, minutes above 0 are wanted"),
    (["--duration", "nan"], 2, "--duration is nan"),
    (["--repeat", "0"], 2, "--repeat"),
    (["--prompts", "{tmp}/none.jsonl"], 2, "none.jsonl: cannot be read"),
    (["--out", "{tmp}/prompts.jsonl"], 2, "exists already"),
    (["--out", "{tmp}/no/folder.jsonl"], 2, "there is no folder"),
    (["--out", "{tmp}"], 2, "is a folder"),
    (["--out", "/dev/full"], 2, "/dev/full: is no regular file"),
    (["--out", "/proc/records.jsonl"], 1, "cannot be written"),
    (["--ctx", "30"], 2, "no prompt fits into a context of 30 tokens"),
    (["-t", "{tiny}/recurrent.gguf"], 4, "recurrent cannot drop rejected tokens"),
    (["-d", "{tiny}/renamed.gguf"], 4, "token 300 is"),
    (["-d", "{tiny}/missing.gguf"], 3, "no such file"),
    (["compare", "{tmp}/none", "{tmp}/none"], 2, "none: cannot be read"),
    (["compare", "{tmp}/prompts.jsonl", "{tmp}/prompts.jsonl"], 2, "line 1: is no record"),
    (["compare", "{tmp}/empty", "{tmp}/empty"], 2, "empty: holds no answers"),
]


@pytest.mark.parametrize(("args", "code", "said"), BAD, ids=lambda value: str(value)[:40])
def test_bad_input_is_one_clear_line(
    specli: Specli,
    tiny: Path,
    tmp_path: Path,
    few: list[object],
    args: list[str],
    code: int,
    said: str,
) -> None:
    (tmp_path / "empty").write_text("")
    done = specli(*few, *(arg.format(tiny=tiny, tmp=tmp_path) for arg in args))
    assert (done.code, done.out) == (code, "")
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert said in errors[0]
    assert not list(tmp_path.rglob("*.partial"))


def test_help_has_examples(specli: Specli) -> None:
    assert "specli bench --quick" in specli("bench", "--help").out
    assert "specli bench compare before.jsonl after.jsonl" in specli("bench", "compare", "-h").out
