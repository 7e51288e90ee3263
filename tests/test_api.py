"""specli.load: the same answers and events as the command line's, for programs."""

import gc
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
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
    ModelError,
    PairError,
    SpecliError,
    Speculator,
    Start,
    Stats,
    Text,
    TooLongError,
    UsageError,
    load,
)
from tests.cli.conftest import Result, specli  # noqa: F401  # a fixture

N = 24


def press_ctrl_c() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@pytest.fixture(scope="module")
def model(tiny: Path) -> Iterator[Speculator]:
    with load(tiny / "target.gguf", tiny / "draft.gguf", draft_tokens=3, temp=0, threads=1) as it:
        yield it


def text_of(model: Speculator, prompt: str, max_tokens: int = N) -> str:
    return model.answer(prompt, max_tokens=max_tokens).text


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


def test_it_works_in_threads(tiny: Path, model: Speculator) -> None:
    whole, found = text_of(model, "hello"), {}

    def answer(i: int) -> None:
        with load(tiny / "target.gguf", "none", temp=0, threads=1) as own:
            found[i] = text_of(own, "hello")

    threads = [threading.Thread(target=answer, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: whole, 1: whole}


def test_threads_that_share_a_model_wait_for_each_other(model: Speculator) -> None:
    wanted = {prompt: text_of(model, prompt) for prompt in ("hello", "and you", "again")}
    found: dict[str, str] = {}
    chat, n = model.chat(), threading.Barrier(2 * len(wanted))

    def answer(prompt: str) -> None:
        n.wait()
        found[prompt] = text_of(model, prompt)

    def talk() -> None:
        n.wait()
        chat.answer("hello", max_tokens=5)

    threads = [threading.Thread(target=answer, args=(prompt,)) for prompt in wanted]
    threads += [threading.Thread(target=talk) for _ in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == wanted
    assert [message.role for message in chat.messages] == ["user", "assistant"] * 3


def test_a_stream_is_ended_by_another_thread_not_broken(model: Speculator) -> None:
    whole, stream = text_of(model, "hello"), model.stream("something else")
    next(stream)
    other = threading.Thread(target=text_of, args=(model, "hello"))
    other.start()
    with pytest.raises(AnswerEnded):  # noqa: PT012
        for _ in stream:
            other.join(0.01)
    other.join()
    assert text_of(model, "hello") == whole


def test_a_turn_that_was_left_does_not_come_back_later(model: Speculator) -> None:
    chat = model.chat()
    left = chat.send("one", max_tokens=9)
    while not isinstance(next(left), Text):
        pass
    chat.answer("two", max_tokens=3)
    del left
    assert [m.content for m in chat.messages if m.role == "user"] == ["one", "two"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_is_told_at_once_that_it_has_no_model(tiny: Path) -> None:
    """In a process of its own: a fork of the tests' would end as they do."""
    script = f"""
import os, sys, warnings
from specli import *
warnings.simplefilter("ignore")
with load({str(tiny / "target.gguf")!r}, "none", threads=1) as model:
    stream = model.stream("hello")
    next(stream), next(stream)
    if (child := os.fork()) == 0:
        asks = [lambda: model.answer("x"), lambda: next(stream), lambda: model.chat().answer("x")]
        for ask in asks:
            try:
                ask()
            except SpecliError as error:
                print(error.message)
        model.close()
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), isinstance(next(stream), Text))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100
    )
    said = ["this model was loaded by another process, a fork cannot use it"] * 3
    assert done.stdout.splitlines() == [*said, "7 True"], done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("long", [False, True], ids=["answering", "reading"])
def test_ctrl_c_is_an_exception_that_breaks_nothing(model: Speculator, long: bool) -> None:
    whole = text_of(model, "hello")
    prompt = "many words " * 180 if long else "hello"
    for seconds in (0.001, 0.004, 0.01, 0.02):
        timer = threading.Timer(seconds, press_ctrl_c)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            timer.start()
            while True:
                for _ in model.stream(prompt, max_tokens=2 if long else None):
                    pass
                text_of(model, "x", 1)
        timer.join()
        assert text_of(model, "hello") == whole


def test_ctrl_c_ends_the_loading(tiny: Path) -> None:
    told = []

    def press(what: str, share: float) -> None:
        told.append(what)
        press_ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        load(tiny / "target.gguf", "none", on_progress=press)
    assert told[0] == "loading target"
    assert not [t for t in threading.enumerate() if t.name.startswith("specli") and t.is_alive()][
        1:
    ]


def test_progress_is_told(tiny: Path) -> None:
    told: list[tuple[str, float]] = []
    load(tiny / "target.gguf", "none", on_progress=lambda *args: told.append(args)).close()
    assert told[-1] == ("loading target", 1.0)
    assert len({int(100 * share) for _, share in told}) == len(told)


def test_what_progress_raises_ends_the_loading(
    tiny: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = []

    def fail(what: str, share: float) -> None:
        told.append(share)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        load(tiny / "target.gguf", "none", on_progress=fail)
    assert len(told) == 1
    assert capfd.readouterr() == ("", "")


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


@pytest.mark.parametrize(
    ("target", "more", "kind", "said"),
    [
        ("target.gguf", {"temp": -1}, UsageError, "^temp is -1, 0.0 or more is wanted"),
        ("target.gguf", {"draft_tokens": 65}, UsageError, "^draft_tokens is 65, 0 to 64"),
        ("target.gguf", {"draft_tokens": "many"}, UsageError, "^draft_tokens is 'many'"),
        ("target.gguf", {"draft_gpu_layers": -2}, UsageError, "^draft_gpu_layers is -2"),
        ("target.gguf", {"temp": "hot"}, UsageError, "^temp is 'hot', a number is wanted"),
        ("target.gguf", {"top_k": 1.5}, UsageError, "^top_k is 1.5, a whole number"),
        ("target.gguf", {"gpu_layers": None}, UsageError, "^gpu_layers is None, a number"),
        ("target.gguf", {"draft": 3}, UsageError, "^draft is 3, a text is wanted"),
        ("target.gguf", {"draft": "a\0b"}, UsageError, "^draft is 'a.x00b', a name or a path"),
        ("target.gguf", {"chat_template": ""}, UsageError, "^chat_template is ''"),
        ("target.gguf", {"on_progress": 3}, UsageError, "^on_progress is 3, a function"),
        ("target.gguf", {"json_schema": 3}, UsageError, "^json_schema is 3, a dict or a text"),
        ("target.gguf", {"json_schema": {"a": {1}}}, UsageError, "^json_schema cannot be written"),
        ("target.gguf", {"json_schema": {"type": "x"}}, UsageError, "^json_schema: /type is 'x'"),
        ("target.gguf", {"json_schema": "{"}, UsageError, "^json_schema is not valid JSON"),
        ("target.gguf", {"grammar": "root ::= x"}, UsageError, "the grammar is not valid GBNF"),
        ("target.gguf", {"grammar": "", "json_schema": {}}, UsageError, "^grammar is ''"),
        ("target.gguf", {"draft": "renamed.gguf"}, PairError, "token 300 is"),
        ("missing.gguf", {}, ModelError, "missing.gguf: no such file"),
        ("lama-8b", {}, ModelError, "no model is called 'lama-8b'"),
        ("target.gguf", {"chat_template": "/none"}, ModelError, "/none: cannot be read"),
    ],
)
def test_what_cannot_be_is_an_error_in_pythons_words(
    tiny: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    more: dict[str, object],
    kind: type[SpecliError],
    said: str,
) -> None:
    monkeypatch.chdir(tiny)
    with pytest.raises(kind, match=said):
        load(target, **more)  # type: ignore[arg-type]


def test_what_cannot_be_answered_is_an_error_at_once(tiny: Path, model: Speculator) -> None:
    with pytest.raises(UsageError, match=r"^max_tokens is -1, 0 or more"):
        model.stream("hello", max_tokens=-1)
    with pytest.raises(UsageError, match=r"^stop is empty"):
        model.stream("hello", stop="")
    with pytest.raises(UsageError, match="raw is for a text"):
        model.stream([Message("user", "x")], raw=True)
    with pytest.raises(UsageError, match="not valid UTF-8"):
        model.stream("\udcff")
    with load(tiny / "no_template.gguf", "none") as other:
        with pytest.raises(ModelError, match="no chat template") as caught:
            other.stream("hello")
        assert caught.value.hint.startswith("give one with chat_template FILE")
        assert other.answer("hello", raw=True, max_tokens=3).text
    with pytest.raises(SpecliError, match="closed"):
        other.stream("hello")


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        (None, "the prompt is None, a text or a list of messages"),
        (b"hello", "the prompt is b'hello', a text or"),
        ({"role": "user", "content": "x"}, "the prompt is {'role': 'user', 'content': 'x'}, a"),
        (" ", "the prompt is empty"),
        ([], "holds none to answer"),
        (["x"], "message 1 is 'x', a message"),
        ([{"content": "x"}], "message 1 has no role"),
        ([{"role": "usr", "content": "x"}], "the role of message 1 is 'usr', system, user or"),
        (
            [Message("user", "x"), Message("user", cast(str, 3))],
            "content of message 2 is 3, a text",
        ),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "only text can be read"),
        ([{"role": "user", "content": [{"type": "text"}]}], "content of message 1 is None, a text"),
    ],
)
def test_a_prompt_that_is_none_is_a_usage_error(
    model: Speculator, prompt: object, said: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        model.answer(prompt)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"stop": 3}, "stop is 3, a text or a list of texts is wanted"),
        ({"stop": [3]}, "stop is 3, a text is wanted"),
        ({"stop": None}, "stop is None, a text or"),
        ({"max_tokens": "4"}, "max_tokens is '4', a number"),
        ({"max_tokens": True}, "max_tokens is True, a number"),
        ({"max_tokens": 1.5}, "max_tokens is 1.5, a whole number"),
    ],
)
def test_a_wrong_type_is_a_usage_error(
    model: Speculator, more: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        model.chat().answer("hello", **more)  # type: ignore[arg-type]


def test_a_content_may_come_in_parts(model: Speculator) -> None:
    parts = [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]
    answer = model.answer([{"role": "user", "content": parts}], max_tokens=N)
    assert answer.text == text_of(model, "hello")


def test_what_is_closed_says_so(tiny: Path) -> None:
    model = load(tiny / "target.gguf", "none", threads=1)
    stream, chat = model.stream("hello"), model.chat()
    next(stream)
    model.close()
    model.close()
    for ask in (lambda: next(stream), lambda: model.answer("x"), lambda: chat.answer("x")):
        with pytest.raises(SpecliError, match="closed"):
            ask()


def test_what_a_loop_raises_passes_and_closes(tiny: Path) -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), load(tiny / "target.gguf", "none", threads=1) as model:  # noqa: PT012
        for _ in model.stream("hello"):
            raise ZeroDivisionError
    assert threading.active_count() == before


def test_what_is_let_go_is_closed(tiny: Path) -> None:
    before = threading.active_count()
    for event in load(tiny / "target.gguf", "ngram").stream("hello", max_tokens=2):
        assert event.as_dict()
    gc.collect()
    assert threading.active_count() == before


def test_it_leaves_signals_logging_and_the_streams_alone(
    tiny: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    before = signal.getsignal(signal.SIGINT)
    with load(tiny / "target.gguf", "ngram") as model:
        assert signal.getsignal(signal.SIGINT) is before
        model.answer("hello", max_tokens=2)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


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


def errors_below(kind: type[SpecliError]) -> Iterator[type[SpecliError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from errors_below(below)


def test_all_errors_can_be_pickled() -> None:
    kinds = {*errors_below(SpecliError)}
    assert len(kinds) >= 9
    for kind in kinds:
        error = kind(7, 5) if issubclass(kind, TooLongError) else kind("this is so", "do that")
        error.message, error.args = "in Python's words", ("in Python's words",)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(error, protocol))
            assert type(again) is kind
            assert (str(again), vars(again)) == (str(error), vars(error))


@pytest.mark.real
def test_the_examples_of_the_documentation_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psutil.cpu_count", lambda logical=True: 1)  # threads must not fight
    text = (Path(__file__).parent.parent / "docs" / "python.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == 7
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/python.md", "exec"), names)
        assert capsys.readouterr().out
