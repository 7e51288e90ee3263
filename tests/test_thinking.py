"""Thoughts and answers: told apart by tags, wherever the tokens are cut."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specli.assemble import Pair, Session, open_session
from specli.chat import Answerer, Done, Message, Text
from specli.models.store import Located
from specli.settings import SamplingSettings, Settings
from specli.template import ChatTemplate
from specli.thinking import FAMILIES, AnswerStream, Tags, ThoughtSplitter, find_tags
from tests.test_text import CUTS, chunked

THINK = FAMILIES[-1]
HARMONY = FAMILIES[0]
HI = [Message("user", "hi")]


def read(
    pieces: Sequence[bytes | str],
    tags: Tags | None,
    stops: Sequence[str] = (),
    *,
    begun: bool = False,
) -> tuple[str, str]:
    """Return what is thought and what is said. Pieces that are no bytes are control tokens."""
    stream = AnswerStream(stops, ThoughtSplitter(tags, begun=begun))
    said = {True: "", False: ""}
    for piece in pieces:
        data = piece if isinstance(piece, bytes) else stream.marks.get(piece.encode(), b"")
        for text, thought in stream.feed(data):
            said[thought] += text
        if stream.stopped:
            return said[True], said[False]
    for text, thought in stream.flush():
        said[thought] += text
    return said[True], said[False]


@pytest.mark.parametrize("tags", FAMILIES, ids=lambda tags: tags.start)
@given(cuts=CUTS)
def test_tags_part_thought_and_answer_however_they_are_cut(tags: Tags, cuts: list[int]) -> None:
    text = f"{tags.start}\nA 🙂 < b.\n{tags.end}\n\nYes <| [no].\n"
    assert read(chunked(text.encode(), cuts), tags) == ("A 🙂 < b.\n", "Yes <| [no].\n")
    assert read(chunked(text[len(tags.start) :].encode(), cuts), tags, begun=True) == (
        "A 🙂 < b.\n",
        "Yes <| [no].\n",
    )


@given(st.text("<think>/\n a🙂", max_size=60), CUTS)
def test_nothing_is_lost_and_cuts_change_nothing(text: str, cuts: list[int]) -> None:
    data = text.encode()
    assert read(chunked(data, cuts), THINK) == read([data], THINK)
    assert read(chunked(data, cuts), None) == ("", text)
    thought, answer = read([data], THINK)
    if not text.lstrip().startswith("<think>"):
        assert (thought, answer) == ("", text)
    else:
        assert len(thought) + len(answer) <= len(text) - len("<think>")


def test_a_tag_later_on_is_text() -> None:
    said = "Qwen writes <think> and </think>."
    assert read([said.encode()], THINK) == ("", said)
    assert read([f"<think>hm</think>{said}".encode()], THINK) == ("hm", said)
    assert read([b"  \n so"], THINK) == ("", "  \n so")
    assert read([b" \n"], THINK) == ("", " \n")


def test_a_thought_that_does_not_end_stays_one() -> None:
    assert read([b"<think>\nhm </thi"], THINK) == ("hm </thi", "")
    assert read([b"hm"], THINK, begun=True) == ("hm", "")
    assert read([b"<thi"], THINK) == ("", "<thi")


def test_several_thoughts_come_before_the_answer() -> None:
    assert read([b"<think>a</think>\n<think>b</think>\n\nc"], THINK) == ("ab", "c")


def test_a_stop_string_ends_the_answer_not_the_thought() -> None:
    text = "<think>one\n\nEND two</think>\n\nthree END four"
    for n in range(1, 9):
        pieces = [text[at : at + n].encode() for at in range(0, len(text), n)]
        assert read(pieces, THINK, ["END"]) == ("one\n\nEND two", "three ")
        assert read(pieces, THINK, ["zzz", "four!"]) == ("one\n\nEND two", "three END four")


def test_tags_that_are_control_tokens_are_known_and_not_shown() -> None:
    tags = find_tags("[THINK][/THINK]")
    assert read(["[THINK]", b"hm", "[/THINK]", b"Yes", "[INST]"], tags) == ("hm", "Yes")
    assert read([b"Yes", "[THINK]", b" no"], tags) == ("", "Yes no")
    channel, message = "<|channel|>", "<|message|>"
    thought: list[str | bytes] = [channel, b"analysis", message, b"h", b"m", "<|end|>"]
    header: list[str | bytes] = ["<|start|>", b"assistant", channel, b"final", message]
    assert read([*thought, *header, b"Yes", b"."], HARMONY) == ("hm", "Yes.")
    assert read([*thought, "<|start|>", b"assistant", *thought, *header, b"Yes"], HARMONY) == (
        "hmhm",
        "Yes",
    )
    as_llama_cpp_has_it = [
        piece if isinstance(piece, bytes) or piece == "<|end|>" else piece.encode()
        for piece in [*thought, *header, b"Yes"]
    ]
    assert read(as_llama_cpp_has_it, HARMONY) == ("hm", "Yes")
    assert read([channel, b"final", message, b"Yes"], HARMONY) == ("", "Yes")
    assert read([channel, b"final"], HARMONY) == ("", "final")


def test_what_wraps_an_answer_is_not_part_of_it() -> None:
    tags = find_tags("<think></think> and <response></response>")
    text = b"<think>hm</think>\n<response>Yes.</response>"
    for n in (1, 5, 100):
        pieces = [text[at : at + n] for at in range(0, len(text), n)]
        assert read(pieces, tags) == ("hm", "Yes.")


# --- answers of tiny models


@dataclass(frozen=True)
class Renamed:
    """A vocabulary in which some tokens stand for something else: bytes, or control tokens."""

    session: Session
    bytes_of: dict[int, bytes]
    controls: dict[int, bytes]

    def tokenize(self, text: str) -> list[int]:
        return self.session.answerer.tokenizer.tokenize(text)

    def piece(self, token: int) -> bytes:
        if token in self.controls:
            return b""
        return self.bytes_of.get(token, self.session.answerer.tokenizer.piece(token))

    def text(self, token: int) -> bytes:
        return self.controls.get(token, self.session.answerer.tokenizer.text(token))


def said(answerer: Answerer) -> tuple[str, str, Done]:
    *events, done = answerer.reply(HI, 60)
    assert isinstance(done, Done)
    texts = [event for event in events if isinstance(event, Text)]
    thought, answer = (
        "".join(t.text for t in texts if t.thought is kind) for kind in (True, False)
    )
    return thought, answer, done


@pytest.mark.parametrize("k", [0, 3])
@pytest.mark.parametrize("control", [True, False])
def test_an_answer_ends_its_thought(tiny: Path, k: int, control: bool) -> None:
    path = tiny / "target.gguf"
    settings = Settings(k=k, sampling=SamplingSettings(temperature=0.0), n_threads=1)
    source = "{% for m in messages %}{{ m.content }}{% endfor %}\nA: <think>\n{# </think> #}"
    with open_session(Pair(Located("t", path), Located("t", path)), settings) as session:
        template = ChatTemplate(source, "<s>", "</s>")
        answerer = replace(session.answerer, template=template)
        whole, nothing, _ = said(answerer)
        assert whole
        assert nothing == ""
        tokens = answerer.decoder.history[-60:]
        names = {next(t for i, t in enumerate(tokens) if tokens.index(t) == i > 20): b"</think>"}
        renamed = Renamed(session, {} if control else names, names if control else {})
        thought, answer, done = said(replace(answerer, tokenizer=renamed))
        assert whole.startswith(thought)
        assert answer
        assert "</think>" not in thought
        assert done.stats.predicted_n == 60
        stop = answer[1:3]
        stopped = replace(answerer, tokenizer=renamed, stops=(stop, thought[:1]))
        again, short, done = said(stopped)
        assert again == thought
        assert short == answer[: min(answer.index(s) for s in stopped.stops if s in answer)]
        assert done.reason == "stop"
