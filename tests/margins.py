"""Greedy equality as computers allow it: equal, or as good as tied where two runs part.

Several rows at once are summed in another order than one by one, and a KV cache holds 16 bits. So
logits differ a little, and where the two best are closer than that, either is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.model import LlamaModel
from specli.engine.cache import Cache, common_prefix

TIED = 0.5  # logits: more than a prompt evaluated in other batches changes them


@dataclass(frozen=True)
class Divergence:
    """Where two token sequences part, and how close the two tokens are there, in logits."""

    at: int
    margin: float


def divergence(
    path: Path, prompt: Sequence[int], plain: Sequence[int], other: Sequence[int]
) -> Divergence | None:
    """Compare two continuations of a prompt; None where they are equal."""
    at = common_prefix(plain, other)
    if at == len(plain) == len(other):
        return None
    history = [*prompt, *plain[:at]]
    settings = ContextSettings(len(history) + 1, 1, 2)
    with LlamaModel(path) as model, LlamaContext(model, settings) as context:
        cache = Cache(context)
        for _ in cache.sync(history[:-1]):
            pass
        row = cache.fill(history[-1:], 1)[0]
        best = float(row.max())
        return Divergence(at, best - float(min(row[plain[at]], row[other[at]])))
