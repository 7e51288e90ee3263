"""A loaded pair of tiny models, and what is asked of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from specli import (
    Speculator,
    load,
)

N = 24


@pytest.fixture(scope="package")
def model(tiny: Path) -> Iterator[Speculator]:
    with load(tiny / "target.gguf", tiny / "draft.gguf", draft_tokens=3, temp=0, threads=1) as it:
        yield it


def text_of(model: Speculator, prompt: str, max_tokens: int = N) -> str:
    return model.answer(prompt, max_tokens=max_tokens).text
