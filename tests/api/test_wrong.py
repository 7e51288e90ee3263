"""What cannot be asked of a model in Python is one error, in its words."""

import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from specli import (
    Message,
    ModelError,
    PairError,
    SpecliError,
    Speculator,
    TooLongError,
    UsageError,
    load,
)
from tests.api.conftest import N, text_of


@pytest.mark.parametrize(
    ("target", "more", "kind", "said"),
    [
        ("target.gguf", {"temp": -1}, UsageError, "^temp is -1, 0.0 or more is wanted"),
        ("target.gguf", {"draft_tokens": 65}, UsageError, "^draft_tokens is 65, 0 to 64"),
        ("target.gguf", {"draft_tokens": "many"}, UsageError, "^draft_tokens is 'many'"),
        ("target.gguf", {"draft_gpu_layers": -2}, UsageError, "^draft_gpu_layers is -2"),
        ("target.gguf", {"force": "no"}, UsageError, "^force is 'no', True or False is wanted"),
        ("target.gguf", {"requantize_draft": 1}, UsageError, "^requantize_draft is 1, True or"),
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


def errors_below(kind: type[SpecliError]) -> Iterator[type[SpecliError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from errors_below(below)


def test_all_errors_can_be_pickled() -> None:
    kinds = {*errors_below(SpecliError)}
    assert len(kinds) >= 9
    for kind in kinds:
        error = kind(7, 5, 0) if issubclass(kind, TooLongError) else kind("this is so", "do that")
        error.message, error.args = "in Python's words", ("in Python's words",)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(error, protocol))
            assert type(again) is kind
            assert (str(again), vars(again)) == (str(error), vars(error))
