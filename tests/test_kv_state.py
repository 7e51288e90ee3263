"""What a target remembers comes back the same, or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specli import kv_state
from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.model import LlamaModel
from specli.engine.cache import Cache
from specli.kv_state import load_state, put_back, save_state, state_file, state_identity, take

TEXT = list(range(100, 140))


@contextmanager
def cache(path: Path, n_ctx: int = 512) -> Iterator[tuple[Cache, dict[str, Any]]]:
    with LlamaModel(path) as model, LlamaContext(model, ContextSettings(n_ctx, 1, 1)) as context:
        yield Cache(context), state_identity(path, context.n_ctx, -1)


@pytest.mark.parametrize("name", ["target", "swa", "recurrent", "hybrid"])
def test_a_new_context_goes_on_as_the_old_one_would(tiny: Path, name: str) -> None:
    path = tiny / f"{name}.gguf"
    with cache(path) as (old, identity), cache(path) as (new, same):
        list(old.sync(TEXT))
        state = take(old, identity)
        assert state
        save_state(state_file("a"), state)
        wanted = old.fill([7], 1).copy()
        list(new.sync([1, 2, 3]))
        assert put_back(load_state(state_file("a"), same), new, same)
        assert new.tokens == TEXT
        assert next(new.sync(TEXT)) == len(TEXT)  # nothing is evaluated again
        np.testing.assert_array_equal(new.fill([7], 1), wanted)
    assert state_file("a").stat().st_mode & 0o077 == 0


def test_a_damaged_or_foreign_state_is_none(tiny: Path) -> None:
    path, file = tiny / "target.gguf", state_file("a")
    with cache(path) as (old, identity):
        list(old.sync(TEXT))
        state = take(old, identity)
        assert state
        save_state(file, state)
    data = file.read_bytes()
    for damaged in (b"", data[:10], data[:200], data[:-1], data + b"x", data[:-9] + b"123456789"):
        file.write_bytes(damaged)
        assert load_state(file, identity) is None
    at = data.index(b"100, 101")
    file.write_bytes(data[:at] + b"101" + data[at + 3 :])  # other tokens than were decoded
    assert load_state(file, identity) is None
    file.write_bytes(data)
    assert load_state(file, identity)
    for key in identity:
        assert load_state(file, identity | {key: "other"}) is None
    with cache(path, 256) as (smaller, other):
        assert load_state(file, other) is None
        assert not put_back(state, smaller, other)
        assert not put_back(None, smaller, other)
    assert load_state(state_file("b"), identity) is None


def test_what_llama_cpp_refuses_leaves_an_empty_cache(tiny: Path) -> None:
    with cache(tiny / "target.gguf") as (one, identity):
        list(one.sync(TEXT))
        state = take(one, identity)
        assert state
        cut = kv_state.KvState(identity, state.tokens, state.data[:100])
        assert not put_back(cut, one, identity)
        assert one.tokens == []
        short = kv_state.KvState(identity, state.tokens[:-1], state.data)
        assert not put_back(short, one, identity)
        assert one.tokens == []
        assert take(one, identity) is None


def test_the_oldest_states_make_room(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cache(tiny / "target.gguf") as (one, identity):
        list(one.sync(TEXT))
        state = take(one, identity)
        assert state
        monkeypatch.setattr(kv_state, "MOST_BYTES", int(2.9 * state.data.size))
        for name in ("a", "b", "a", "c"):
            save_state(state_file(name), state)
        assert [state_file(name).exists() for name in "abc"] == [True, False, True]
        monkeypatch.setattr(kv_state, "MOST_BYTES", state.data.size - 1)
        assert take(one, identity) is None


def test_a_cache_folder_that_cannot_be_written_is_left_alone(tiny: Path) -> None:
    state_file("a").parent.parent.mkdir(parents=True)
    state_file("a").parent.write_text("a file")
    with cache(tiny / "target.gguf") as (one, identity):
        list(one.sync(TEXT))
        state = take(one, identity)
        assert state
        save_state(state_file("a"), state)
    assert load_state(state_file("a"), identity) is None
