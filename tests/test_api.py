"""specli.load: the same answers and events as the command line's, for programs."""

import gc
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

import specli as package
from specli import (
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
    with pytest.raises(SpecliError, match="was ended by the next one"):
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


@pytest.mark.parametrize(
    ("target", "more", "kind", "said"),
    [
        ("target.gguf", {"temp": -1}, UsageError, "^temp is -1.0, 0.0 or more is wanted"),
        ("target.gguf", {"draft_tokens": 65}, UsageError, "^draft_tokens is 65, 0 to 64"),
        ("target.gguf", {"draft_tokens": "many"}, UsageError, "^draft_tokens is 'many'"),
        ("target.gguf", {"draft_gpu_layers": -2}, UsageError, "^draft_gpu_layers is -2"),
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
    names = [name for name in dir(package) if not name.startswith("_")]
    assert {"load", "Speculator", "Answer", "Conversation", "Event", "SpecliError"} <= {*names}
    for name in names:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


@pytest.mark.real
def test_the_examples_of_the_documentation_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psutil.cpu_count", lambda logical=True: 1)  # threads must not fight
    text = (Path(__file__).parent.parent / "docs" / "python.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == 6
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/python.md", "exec"), names)
        assert capsys.readouterr().out
