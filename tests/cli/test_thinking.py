"""--think: what a model thinks is shown, hidden, or asked not to be."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from specli.assemble import Pair, open_session
from specli.chat import Message
from specli.models.store import Located
from specli.settings import SamplingSettings, Settings
from specli.text import terminal_safe
from tests import tiny_gguf
from tests.cli.conftest import Result

Specli = Callable[..., Result]
GREEDY = ("--temp", 0, "--no-stats", "--threads", 1, "-k", 2, "-n", 60)
SWITCH = "{% if enable_thinking is defined and not enable_thinking %}</think>{% endif %}"
TURNS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that says </think> some time after its prompt has said <think>."""
    folder = tmp_path_factory.mktemp("thinker")
    source = TURNS + "A: <think>\n" + SWITCH
    path = tiny_gguf.write_llama(folder / "plain.gguf", chat_template=source)
    settings = Settings(k=0, sampling=SamplingSettings(temperature=0.0), n_threads=1)
    with open_session(Pair(Located("t", path), "none"), settings) as session:
        list(session.answerer.reply([Message("user", "hi")], 60))
        history = session.answerer.decoder.history
    end = next(t for i, t in enumerate(history) if history.index(t) == i > len(history) - 50)
    replaced = {end: "</think>"}
    return tiny_gguf.write_llama(folder / "t.gguf", chat_template=source, replace=replaced)


def events(done: Result) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.out.splitlines()]


def test_thoughts_are_hidden_shown_and_marked(specli: Specli, thinker: Path) -> None:
    args = ("run", "hi", "-t", thinker, *GREEDY)
    hidden, shown = specli(*args), specli(*args, "--think", "show")
    assert hidden.code == shown.code == 0
    assert (hidden.err, shown.err) == ("", "")
    for think in ("hide", "show"):
        said = [e for e in events(specli(*args, "--json", "--think", think)) if e["type"] == "text"]
        thought = "".join(str(e["text"]) for e in said if e.get("thought"))
        answer = "".join(str(e["text"]) for e in said if "thought" not in e)
        assert thought
        assert answer
        assert hidden.out == answer
        between = "\n" if thought.endswith("\n") else "\n\n"
        assert shown.out == thought + between + answer


def test_off_asks_the_template(specli: Specli, thinker: Path, tmp_path: Path) -> None:
    args = ("run", "hi", "-t", thinker, *GREEDY, "--think", "off")
    off = specli(*args, "--json")
    assert off.err == ""
    assert not any("thought" in event for event in events(off))
    path = tmp_path / "template.jinja"
    path.write_text(TURNS + "A: <think>\n")
    always = specli(*args, "--chat-template", path)
    assert always.err.startswith("hint: this model's template cannot ask it not to think")
    assert always.err.count("\n") == 1
    path.write_text(TURNS)
    assert specli(*args, "--chat-template", path).err == ""


def test_tags_are_text_where_the_template_does_not_know_them(
    specli: Specli, thinker: Path, tmp_path: Path
) -> None:
    path = tmp_path / "template.jinja"
    path.write_text(TURNS + "A: <thi{# #}nk>\n{# the same prompt #}")
    args = ("run", "hi", "-t", thinker, *GREEDY, "--think", "hide")
    plain = specli(*args, "--chat-template", path)
    assert "</think>" in plain.out
    assert plain.out.endswith(specli(*args).out)
    raw = specli(*args, "--raw")
    assert specli(*args, "--raw", "--json").out.count('"thought"') == 0
    assert raw.code == 0


def test_a_conversation_goes_on_without_what_was_thought(
    specli: Specli, thinker: Path, tmp_path: Path
) -> None:
    """The template is given the answer and, apart from it, the thought."""
    path = tmp_path / "template.jinja"
    given = "messages[1].content | tojson ~ messages[1].reasoning_content | tojson"
    refusal = "{% if messages | length > 2 %}{{ raise_exception(" + given + ") }}{% endif %}"
    path.write_text(refusal + TURNS + "A: <think>\n{# #}")
    done = specli(
        *("chat", "-t", thinker, *GREEDY, "--json", "--chat-template", path), stdin=b"hi\nhi\n"
    )
    said = [event for event in events(done) if event["type"] == "text"]
    thought = "".join(str(event["text"]) for event in said if event.get("thought"))
    answer = "".join(str(event["text"]) for event in said if "thought" not in event)
    assert thought
    wanted = json.dumps(answer, ensure_ascii=False) + json.dumps(thought, ensure_ascii=False)
    assert " ".join(terminal_safe(wanted).split()) in done.err


def test_think_takes_three_values(specli: Specli) -> None:
    done = specli("run", "hi", "--think", "loudly")
    assert (done.code, done.err) == (
        2,
        "error: --think is loudly, show, hide or off is wanted\n",
    )
