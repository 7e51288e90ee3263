"""A clock that the engine's tests turn by hand."""

import pytest

from tests.fakes import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time that passes in decodes of fake models only."""
    made = Clock()
    for module in ("cache", "calibration", "decode"):
        monkeypatch.setattr(f"specli.engine.{module}.time", made)
    return made
