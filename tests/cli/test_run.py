"""specli run: what goes in, what comes out, and what is said when it cannot."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from specli.cli.output import stats_line
from specli.cli.stats_words import in_words
from specli.engine.stats import Stats
from tests.cli.conftest import Result

Specli = Callable[..., Result]
GREEDY = ("--temp", 0, "--no-stats", "--threads", 1)


def test_the_answer_and_nothing_else_goes_to_stdout(specli: Specli, tiny: Path) -> None:
    done = specli("run", "hello", "-t", tiny / "target.gguf", "-n", 20, "--temp", 0)
    assert done.code == 0
    assert done.out
    assert "speculation on (ngram, k auto, " in done.err
    assert "): 20 tokens at " in done.err
    quiet = specli("run", "hello", "-t", tiny / "target.gguf", "-n", 20, *GREEDY)
    assert (quiet.out, quiet.err) == (done.out, "")


@pytest.mark.parametrize("draft", ["none", "ngram", "draft.gguf", "target.gguf"])
def test_every_drafter_gives_the_same_greedy_answer(specli: Specli, tiny: Path, draft: str) -> None:
    name = draft if "." not in draft else tiny / draft
    done = specli("run", "hello", "-t", tiny / "target.gguf", "-d", name, "-n", 60, *GREEDY)
    plain = specli("run", "hello", "-t", tiny / "target.gguf", "-d", "none", "-n", 60, *GREEDY)
    assert done.code == 0
    assert done.out == plain.out


def test_argument_and_pipe_are_joined_by_a_blank_line(specli: Specli, tiny: Path) -> None:
    args = ("-t", tiny / "target.gguf", "-n", 20, *GREEDY)
    joined = specli("run", "a\n\nb", *args)
    assert specli("run", "a", *args, stdin=b"b").out == joined.out
    assert specli("run", *args, stdin=b"a\n\nb").out == joined.out
    assert specli("run", "a", *args).out != joined.out


def test_json_events(specli: Specli, tiny: Path) -> None:
    args = ("-t", tiny / "target.gguf", "-d", tiny / "draft.gguf", "-n", 40, "--temp", 0, "-k", 3)
    done = specli("run", "hello", *args, "--json")
    start, *texts, end = (json.loads(line) for line in done.out.splitlines())
    assert start["type"] == "start"
    assert (start["target"], start["draft"], start["method"]) == ("target", "draft", "draft")
    assert start["settings"]["k"] == 3
    assert {event["type"] for event in texts} == {"text"}
    assert {event["drafted"] for event in texts} == {True, False}
    assert "".join(event["text"] for event in texts) == specli("run", "hello", *args).out
    assert (end["type"], end["reason"]) == ("done", "length")
    stats = end["stats"]
    assert stats["predicted_n"] == 40 == stats["draft_rounds"] + stats["draft_n_accepted"]
    assert stats["acceptance_rate"] == round(stats["draft_n_accepted"] / stats["draft_n"], 4)


def test_a_chat_template_may_come_from_a_pipe(specli: Specli, tiny: Path) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"{{ messages[0].content }}")
    os.close(theirs)
    args = ("-t", tiny / "target.gguf", "-n", 3, "--temp", 0)
    try:
        done = specli("run", "hello", *args, "--chat-template", f"/dev/fd/{ours}")
    finally:
        os.close(ours)
    assert done.code == 0
    assert done.out == specli("run", "hello", "--raw", *args).out


def test_raw_continues_the_text_itself(specli: Specli, tiny: Path) -> None:
    args = ("-n", 20, *GREEDY)
    raw = specli("run", "hello", "--raw", "-t", tiny / "target.gguf", *args)
    assert raw.out == specli("run", "hello", "--raw", "-t", tiny / "no_template.gguf", *args).out
    assert raw.out != specli("run", "hello", "-t", tiny / "target.gguf", *args).out


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (("-d", "none", "-k", 3), "--draft none guesses nothing, --draft-tokens 3 changes nothing"),
        (("--raw", "--system", "Be brief."), "--raw leaves out the system message"),
        (("-d", "none", "-k", 0), ""),
        (("--raw",), ""),
    ],
)
def test_an_option_that_changes_nothing_is_said_to(
    specli: Specli, tiny: Path, options: tuple[object, ...], hint: str
) -> None:
    done = specli("run", "hello", "-t", tiny / "target.gguf", "-n", 4, *GREEDY, *options)
    assert (done.code, done.err) == (0, f"hint: {hint}\n" if hint else "")


def test_control_characters_pass_through_a_pipe_untouched(
    specli: Specli, tiny: Path, tmp_path: Path
) -> None:
    """At a high temperature the tiny model utters every byte there is."""
    args = ("-t", tiny / "target.gguf", "-n", 400, "--temp", 5, "--top-k", 0, "--top-p", 1)
    done = specli("run", "hello", *args, "--min-p", 0, "--seed", 1, "-k", 2, "--no-stats")
    assert any(ord(c) < 0x20 and c not in "\n\t" for c in done.out)


def test_with_no_model_named_demo_answers_and_a_hint_says_so(specli: Specli) -> None:
    done = specli("run", "Say hello.", "-n", 5, "--no-stats", "--offline")
    assert done.code == 0
    assert done.out
    assert done.err.startswith("hint: demo, a very small model, answers")
    assert done.err.count("\n") == 1


def test_speculation_that_cannot_be_is_explained(specli: Specli, tiny: Path) -> None:
    done = specli("run", "hello", "-t", tiny / "recurrent.gguf", "-n", 5)
    assert done.code == 0
    assert "warning: speculation is off: recurrent cannot drop" in done.err
    assert "speculation off (recurrent cannot drop" in done.err


def test_a_prompt_without_quotation_marks(specli: Specli) -> None:
    done = specli("run", "why", "is", "it")
    assert done.code == 2
    assert done.err.splitlines()[1].startswith("hint: a prompt of several words wants quotation")
    done = specli("run", *["word"] * 2000)
    assert len(done.err) < 500
    assert done.err.splitlines()[1].startswith("hint: a prompt of several words wants quotation")
    done = specli("doctor", "why", "is", "it")
    assert done.err.splitlines()[1].startswith("hint: --help shows the options")


BAD = [
    (["-t", "{tiny}/missing.gguf"], 3, "no such file"),
    (["-t", "{tiny}"], 3, "is a directory"),
    (["-t", "{tmp}/empty.gguf"], 3, "is empty"),
    (["-t", "{tmp}/text.gguf"], 3, "is not a GGUF file"),
    (["-t", "{tmp}/cut.gguf"], 3, "cannot load this model"),
    (["-t", "lama-70b"], 3, "did you mean llama-70b"),
    (["-t", "hf:only/half"], 3, "hf:org/repo/file.gguf"),
    (["-t", "llama-70b", "--offline"], 3, "is not in the Hugging Face cache"),
    (["-t", "{tiny}/target.gguf", "-d", "{tiny}/missing.gguf"], 3, "no such file"),
    (["-t", "{tiny}/target.gguf", "-d", "{tiny}/renamed.gguf"], 4, "token 300 is"),
    (["-t", "{tiny}/target.gguf", "-d", "{tiny}/larger.gguf"], 4, "320 tokens, the draft 500"),
    (["-t", "{tiny}/no_template.gguf"], 3, "no chat template"),
    (["-t", "{tiny}/target.gguf", "--ctx", "8"], 2, "the context holds 8"),
    (["--chat-template", "{tmp}/none", "-t", "{tiny}/target.gguf"], 3, "cannot be read"),
    (["--chat-template", "/dev/null", "-t", "{tiny}/target.gguf"], 3, "/dev/null: is empty"),
    (["--chat-template", "{tmp}", "-t", "{tiny}/target.gguf"], 3, "is a folder"),
    (["-k", "-1"], 2, "--draft-tokens is -1, 0 to 64 is wanted"),
    (["-k", "1000000"], 2, "0 to 64 is wanted"),
    (["-k", "many"], 2, "--draft-tokens is many, auto or 0 to 64 is wanted"),
    (["--temp", "nan"], 2, "--temp is nan, 0.0 or more is wanted"),
    (["--temp", "-1"], 2, "--temp is -1.0"),
    (["--temp", "inf"], 2, "--temp is inf"),
    (["--top-p", "1.5"], 2, "--top-p is 1.5, 0.0 to 1.0 is wanted"),
    (["--min-p", "nan"], 2, "--min-p is nan"),
    (["--top-k", "-3"], 2, "--top-k is -3"),
    (["--repeat-penalty", "0"], 2, "--repeat-penalty is 0.0"),
    (["--max-tokens", "-5"], 2, "--max-tokens is -5"),
    (["--ctx", "-1"], 2, "--ctx is -1"),
    (["--threads", "0"], 2, "--threads is 0"),
    (["--seed", "-1"], 2, "--seed is -1"),
    (["--frobnicate"], 2, "No such option"),
]


@pytest.mark.parametrize(("args", "code", "said"), BAD, ids=lambda value: str(value)[:40])
def test_bad_input_is_one_clear_line(
    specli: Specli, tiny: Path, tmp_path: Path, args: list[str], code: int, said: str
) -> None:
    (tmp_path / "empty.gguf").touch()
    (tmp_path / "text.gguf").write_text("hello")
    (tmp_path / "cut.gguf").write_bytes((tiny / "target.gguf").read_bytes()[:9000])
    done = specli("run", "hello", *(arg.format(tiny=tiny, tmp=tmp_path) for arg in args))
    assert done.code == code
    assert done.out == ""
    lines = [line for line in done.err.splitlines() if not line.startswith("hint: demo,")]
    assert lines[0].startswith("error: ")
    assert all(line.startswith("hint: ") for line in lines[1:])
    assert len(lines) <= 2
    assert said in done.err


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        (b"caf\xe9", "stdin is not valid UTF-8: byte 0xe9 at offset 3"),
        (b"", "no prompt"),
        (b" \n ", "no prompt"),
    ],
)
def test_bad_stdin(specli: Specli, tiny: Path, stdin: bytes, said: str) -> None:
    done = specli("run", "-t", tiny / "target.gguf", stdin=stdin)
    assert done.code == 2
    assert done.err.startswith(f"error: {said}")


def test_files_that_hold_nothing_are_no_prompt(specli: Specli, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b" \n")
    (tmp_path / "one.txt").write_bytes(b"one")
    run = "run", "-t", tiny / "target.gguf", "-n", 3, "--file", tmp_path / "empty.txt"
    done = specli(*run)
    assert done.code == 2
    assert done.err.startswith("error: no prompt: the argument, stdin and --file are empty\n")
    assert specli(*run, "--file", tmp_path / "one.txt").code == 0
    done = specli(*run, "why?")
    assert done.code == 0
    assert f"warning: --file: {tmp_path / 'empty.txt'} is empty\n" in done.err


def test_the_context_filling_up_keeps_the_text_and_says_so(specli: Specli, tiny: Path) -> None:
    done = specli("run", "hello", "-t", tiny / "target.gguf", "--ctx", 64, "--temp", 0, "--json")
    *texts, end = (json.loads(line) for line in done.out.splitlines())
    assert done.code == 0
    assert end["reason"] == "context"
    assert len(texts) > 20


@pytest.mark.parametrize("command", [[], ["run"], ["chat"]])
def test_every_command_has_help_with_an_example(specli: Specli, command: list[str]) -> None:
    done = specli(*command, "--help")
    assert done.code == 0
    assert "Example" in done.out
    assert f"specli {command[0] if command else 'run'}" in done.out


def test_version(specli: Specli) -> None:
    assert specli("--version").out.startswith("specli 0.")


def test_odd_file_names(specli: Specli, tiny: Path, tmp_path: Path) -> None:
    for name in ("a b ü.gguf", os.fsdecode(b"bad\xff.gguf")):
        path = tmp_path / name
        path.write_bytes((tiny / "target.gguf").read_bytes())
        assert specli("run", "hi", "-t", path, "-n", 3).code == 0
    for name in ("~nosuch/x.gguf", "a" * 300, "x/" + "a" * 300):
        assert specli("run", "hi", "-t", name).code == 3


@pytest.mark.parametrize("option", ["-t", "-d", "--stop"])
def test_an_empty_value_is_refused(specli: Specli, tiny: Path, option: str) -> None:
    done = specli(
        "run", "hi", *(() if option == "-t" else ("-t", tiny / "target.gguf")), option, ""
    )
    assert done.code == 2
    assert "is empty" in done.err


@pytest.mark.parametrize("n_ctx", [1, 2, 3])
def test_contexts_of_almost_nothing(specli: Specli, tiny: Path, n_ctx: int) -> None:
    args = ("run", "hi", "--raw", "-t", tiny / "target.gguf", "-d", tiny / "draft.gguf", "-n", 8)
    assert specli(*args, "-c", n_ctx).code in (0, 2)
    assert specli(*args, "--draft-ctx", n_ctx).code == 0


def test_bare_specli_shows_the_help(specli: Specli) -> None:
    assert specli().out == specli("--help").out
    assert "Commands:" in specli("models").out + specli("models").err


@pytest.mark.parametrize(
    ("plain_rounds", "said"),
    [
        (20, "speculation off (both: a guess costs more here than it brings): "),
        (15, "no guess in 75% of the rounds: a guess costs more here than it brings): "),
        (5, "speculation on (both, k auto, 2.0 on average): "),
    ],
)
def test_the_statistics_say_when_speculation_turned_itself_off(
    plain_rounds: int, said: str
) -> None:
    stats = Stats("both", draft_rounds=20, plain_rounds=plain_rounds, predicted_n=20)
    stats.draft_n = 0 if plain_rounds == 20 else 40
    assert said in stats_line(stats, None, "eog")
    assert "k=3" in stats_line(stats, 3, "eog")


def test_the_statistics_say_what_a_fixed_number_of_guesses_lost() -> None:
    stats = Stats("draft", draft_rounds=20, predicted_n=20, draft_n=60, draft_s=1.0, target_s=2.0)
    said = "slower than plain decoding, which -k auto would find out"
    assert said in stats_line(stats, 3, "eog")
    assert said not in stats_line(stats, None, "eog")
    assert said not in stats_line(replace(stats, draft_n_accepted=12), 3, "eog")
    assert in_words(stats, "eog")["beside plain"].startswith("slower: ")


@pytest.mark.parametrize("n_positions", [8, 9])
def test_of_many_positions_the_first_are_told(n_positions: int) -> None:
    stats = Stats("draft", draft_n=4 * n_positions)
    stats.drafted_at, stats.accepted_at = [4] * n_positions, [2] * 3  # none of the fourth
    told = in_words(stats, "eog")["by position"]
    assert told == ", ".join(["50%"] * 3 + ["0%"] * 5) + (", ..." if n_positions > 8 else "")


def test_the_statistics_say_when_a_draft_did_not_read_the_prompt() -> None:
    stats = Stats("both", draft_rounds=20, plain_rounds=20, predicted_n=20, draft_unread_n=900)
    why = "the draft, which would have to read the prompt first, costs more here than it brings"
    assert f"speculation off (both: {why}): " in stats_line(stats, None, "eog")
    assert in_words(stats, "eog")["not guessed"] == why
    assert "not guessed" not in in_words(replace(stats, draft_unread_n=0), "eog")
