"""specli.load: the same answers and events as the command line's, for programs."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import pytest

import specli as package
from specli import (
    AnswerEnded,
    Conversation,
    Done,
    Event,
    Message,
    Speculator,
    Start,
    Stats,
    Text,
    TooLongError,
    load,
)
from tests.api.conftest import N, text_of
from tests.cli.conftest import Result, specli  # noqa: F401  # a fixture


def test_the_events_are_those_of_json(
    specli: Callable[..., Result],  # noqa: F811
    tiny: Path,
    model: Speculator,
) -> None:
    args = ("run", "hello", "-t", tiny / "target.gguf", "-d", tiny / "draft.gguf", "-k", 3, "-n", N)
    done = specli(*args, "--temp", 0, "--threads", 1, "--stop", "\x00", "--json")
    theirs = [json.loads(line) for line in done.out.splitlines()]
    events = list(model.stream("hello", max_tokens=N, stop="\x00"))
    ours = [json.loads(json.dumps(event.as_dict())) for event in events]
    assert isinstance(events[0], Start)
    assert isinstance(events[-1], Done)
    assert ours[1:-1] == theirs[1:-1]
    assert ours[-1].keys() == theirs[-1].keys()
    assert ours[-1]["stats"].keys() == theirs[-1]["stats"].keys()
    assert ours[-1]["stats"]["draft_n"] == theirs[-1]["stats"]["draft_n"]
    ours[0]["settings"].pop("seed")
    theirs[0]["settings"].pop("seed")
    assert ours[0] == theirs[0]


def test_an_answer_is_its_events(model: Speculator) -> None:
    events = list(model.stream("hello", max_tokens=N))
    answer = model.answer("hello", max_tokens=N)
    assert answer.text == "".join(event.text for event in events if isinstance(event, Text))
    assert (answer.reason, answer.stats.predicted_n, answer.thought) == ("length", N, "")
    assert answer.stats.cache_n > 0  # the prompt was there already


def test_a_stop_ends_an_answer_before_it(model: Speculator) -> None:
    whole = text_of(model, "hello")
    stop = whole[5:8]
    answer = model.answer("hello", max_tokens=N, stop=stop)
    assert (answer.text, answer.reason) == (whole[: whole.find(stop)], "stop")
    assert text_of(model, "hello") == whole


def test_messages_and_raw_text(model: Speculator) -> None:
    turns = model.answer(
        [{"role": "system", "content": "Be brief."}, Message("user", "hello")], max_tokens=N
    )
    raw = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n"
    assert model.answer(f"{raw}<|im_start|>assistant\n", max_tokens=N, raw=True).text == turns.text


def test_a_conversation_goes_on(model: Speculator) -> None:
    chat = model.chat("Be brief.")
    first = chat.answer("hello", max_tokens=5)
    assert [m.role for m in chat.messages] == ["system", "user", "assistant"]
    assert chat.messages[-1].content == first.text
    for event in chat.send("and then", max_tokens=9):
        if isinstance(event, Text):
            break
    assert chat.messages[-1].content == event.text  # type: ignore[union-attr]
    with pytest.raises(TooLongError, match="tokens, the context holds"):
        chat.send("long " * 10_000)
    assert len(chat.messages) == 5


def test_what_was_thought_stands_beside_the_answer(tiny: Path) -> None:
    """Whether the model sees it again is up to its template, as in specli chat."""

    class Thinker:
        _turn = nullcontext

        def stream(self, prompt: object, **_: object) -> Iterator[Event]:
            yield from (Text("hm", drafted=False, thought=True), Text("Hi.", drafted=True))
            yield Done("eog", Stats("none"))

    chat = Conversation(cast(Speculator, Thinker()))
    assert [event.as_dict() for event in chat.send("hello")][:2] == [
        {"type": "text", "text": "hm", "drafted": False, "thought": True},
        {"type": "text", "text": "Hi.", "drafted": True},
    ]
    assert chat.messages == [Message("user", "hello"), Message("assistant", "Hi.", "hm")]
    with load(tiny / "target.gguf", draft="none", think="off") as model:
        assert model.start.settings["think"] == "off"


def test_whoever_has_enough_may_go(model: Speculator) -> None:
    whole = text_of(model, "hello")
    for _ in model.stream("hello"):
        break
    old = model.stream("something else")
    next(old)
    assert text_of(model, "hello") == whole
    with pytest.raises(AnswerEnded, match="was ended by the next one"):
        next(old)


def test_answers_follow_a_schema_or_a_grammar(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "yes.gbnf").write_text('root ::= "yes"')
    schema = {"enum": ["apple", "pear"]}
    for more, wanted in (
        ({"json_schema": schema}, ('"apple"', '"pear"')),
        ({"json_schema": json.dumps(schema)}, ('"apple"', '"pear"')),
        ({"grammar": tmp_path / "yes.gbnf"}, ("yes",)),
    ):
        with load(tiny / "target.gguf", "none", threads=1, **more) as model:
            assert model.answer("hello").text in wanted
            assert model.chat().answer("hello").text in wanted


def test_config_and_environment_are_the_command_lines(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECLI_TEMP", "nonsense")
    with load(tiny / "target.gguf") as model:
        assert model.start.draft == "ngram"


HEAVY = ("numpy", "llama_cpp", "typer", "rich", "huggingface_hub", "jinja2", "prompt_toolkit")


@pytest.mark.parametrize("line", ["import specli", "from specli import load, Start, Text, Done"])
def test_importing_costs_nothing(line: str) -> None:
    script = f"{line}\nimport logging, signal, sys\n"
    script += f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    script += "print(logging.root.handlers, signal.getsignal(2) is signal.default_int_handler)\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n[] True\n", "")


def test_everything_that_is_named_is_there() -> None:
    names: dict[str, object] = {}
    exec("from specli import *", names)
    assert {"load", "Speculator", "Answer", "Conversation", "Event", "SpecliError"} <= {*names}
    homes = {name for found in package._HOME.values() for name in found}
    assert {*package.__all__} == {*homes, "__version__"} == {*names} - {"__builtins__"}
    assert homes <= {*dir(package)}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.real
def test_the_examples_of_the_documentation_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psutil.cpu_count", lambda logical=True: 1)  # threads must not fight
    text = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == 7
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/python.md", "exec"), names)
        assert capsys.readouterr().out
