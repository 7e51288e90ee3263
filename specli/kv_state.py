"""What a target remembers of a text, beyond the end of its session.

To evaluate a long conversation again may take minutes, to read back what came of it a second. Only
the very same may come of it: a state belongs to one model file, size of context, build and machine.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from specli.backend.context import LlamaContext
from specli.backend.library import system, version
from specli.engine.cache import Cache
from specli.files import open_regular, write_whole
from specli.measurements import file_identity, machine

MOST_BYTES = 10**9  # of one state, and of all that are kept
_MAGIC = b"specli kv state 1\n"


@dataclass(frozen=True, slots=True)
class KvState:
    """What a KV sequence holds. identity: all that it depends on but its tokens."""

    identity: Mapping[str, Any]
    tokens: tuple[int, ...]
    data: NDArray[np.uint8]


def state_identity(target: Path, n_ctx: int, n_gpu_layers: int) -> dict[str, Any]:
    """Return all that a state of a model depends on."""
    try:
        file = file_identity(target)
    except OSError:  # it was removed while it is loaded: no other can come to be the same
        file = [str(target)]
    return {
        "machine": machine(),
        "llama.cpp": version(),
        "system": system(),
        "target": file,
        "n_ctx": n_ctx,
        "n_gpu_layers": n_gpu_layers,
    }


def take(cache: Cache, identity: Mapping[str, Any]) -> KvState | None:
    """Copy what a cache holds; None where that is nothing, or too much."""
    model, tokens = cache.model, tuple(cache.tokens)
    if not tokens or not isinstance(model, LlamaContext) or model.state_bytes > MOST_BYTES:
        return None
    data = model.state()
    return KvState(identity, tokens, data) if data.size else None


def put_back(state: KvState | None, cache: Cache, identity: Mapping[str, Any]) -> bool:
    """Let a cache hold what another held; say whether it does. Else it holds nothing."""
    model = cache.model
    if state is None or state.identity != identity or not isinstance(model, LlamaContext):
        return False
    return model.restore(state.data) and cache.adopt(state.tokens)


def state_file(name: str) -> Path:
    """Return where the state of a conversation lies, whether there is one or not."""
    return user_cache_path("specli") / "kv" / f"{name}.state"


def save_state(path: Path, state: KvState) -> None:
    """Write a state down, whole or not at all, and remove the oldest where all take too much.

    Nothing depends on it: where it cannot be written, there is none.
    """
    data = state.data.data
    head = {"identity": state.identity, "tokens": state.tokens, "n_bytes": state.data.size}
    line = json.dumps(head).encode() + b"\n"
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_room(path, state.data.size)
        write_whole(path, _MAGIC, line, _digest(line, data), data, private=True)


def load_state(path: Path, identity: Mapping[str, Any]) -> KvState | None:
    """Read a state back; None where it is another's, damaged, or not there."""
    try:
        with open_regular(path) as file:
            if file.readline(100) != _MAGIC:
                return None
            line = file.readline()
            head = json.loads(line)
            if head["identity"] != identity or not 0 < head["n_bytes"] <= MOST_BYTES:
                return None
            digest, data = file.readline(100), np.fromfile(file, np.uint8)
            if _digest(line, data.data) != digest:
                return None
            return KvState(identity, tuple(head["tokens"]), data)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _digest(head: bytes, data: memoryview) -> bytes:
    """Return the line that says whether both are whole: llama.cpp would believe anything."""
    whole = hashlib.sha256(head)
    whole.update(data)
    return whole.hexdigest().encode() + b"\n"


def _make_room(path: Path, n_bytes: int) -> None:
    """Remove states, the oldest first, until another has room."""
    others = [other for other in path.parent.glob("*.state*") if other != path]
    by_age = sorted(((other.stat(), other) for other in others), key=lambda one: one[0].st_mtime_ns)
    total = n_bytes + sum(about.st_size for about, _ in by_age)
    for about, other in by_age:
        if total <= MOST_BYTES:
            return
        other.unlink(missing_ok=True)
        total -= about.st_size
