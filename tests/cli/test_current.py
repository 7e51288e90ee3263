"""How another pair takes the place of the one that answers, and what stays where it cannot."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from specli.cli.current import Current
from specli.cli.options import ModelOptions
from specli.cli.waiting import Waiting
from specli.errors import Interrupted, ModelError, PairError, SpecliError


@pytest.fixture
def current(tiny: Path) -> Iterator[Current]:
    options = ModelOptions(target=str(tiny / "target.gguf"), draft="none", threads=1, ctx=128)
    with Current(options) as current:
        yield current


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"target": "no_template.gguf", "draft": None}, ModelError),
        ({"target": "nothing.gguf", "draft": None}, ModelError),
        ({"target": "not_gguf.gguf", "draft": None}, ModelError),
        ({"draft": "renamed.gguf"}, PairError),
    ],
)
def test_what_the_headers_tell_is_refused_before_anything_is_unloaded(
    current: Current, tiny: Path, wanted: dict[str, str | None], error: type[SpecliError]
) -> None:
    (tiny / "not_gguf.gguf").write_bytes(b"no model")
    before = current.ready
    paths = {name: value and str(tiny / value) for name, value in wanted.items()}
    with pytest.raises(error):
        current.reload(current.options.changed(**paths))
    assert current.ready is before


def test_ctrl_c_twice_stops_a_load_and_the_old_pair_answers(
    current: Current, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, cache = current.ready.session, current.ready.session.answerer.decoder.target
    cache.sync(session.answerer.tokenizer.tokenize("remember this"))
    remembered = list(cache.tokens)
    said: list[str] = []

    def twice(self: Waiting, what: str, share: float) -> None:
        if said[-1:] != [what]:
            said.append(what)
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Waiting, "show", twice)
    with pytest.raises(Interrupted):
        current.reload(current.options.changed(target=str(tiny / "swa.gguf")))
    assert said == ["loading swa", "loading target"]
    assert current.ready.session.pair.target.name == "target"
    assert current.ready.session.answerer.decoder.target.tokens == remembered


def test_the_usual_target_is_named_once(
    smollm2: Path, capsys: pytest.CaptureFixture[str], tiny: Path
) -> None:
    with Current(ModelOptions(draft="none", ctx=64)) as current:
        assert "hint: demo" in capsys.readouterr().err
        with pytest.raises(PairError):
            current.reload(current.options.changed(draft=str(tiny / "draft.gguf")))
        current.reload(current.options.changed(draft="ngram"))
        assert "demo" not in capsys.readouterr().err
