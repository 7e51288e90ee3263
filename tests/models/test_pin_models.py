"""scripts/pin_models: what it writes into a models.toml, on a hub that is not there."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import pin_models
from scripts.pin_models import Blob, Repository, parts, pin

REGISTRY = """\
# Models.

[models.tiny]
name = "Tiny"
repo = "org/tiny-GGUF"  # theirs
context = 2048
[models.tiny.files]
q4_0 = { file = "tiny-q4_0.gguf" }
q8_0 = { file = "tiny-q8_0.gguf", size_bytes = 5 }

# One of several parts

[models."huge-1.5t"]
repo = "org/huge-GGUF"
revision = "old"
[models."huge-1.5t".files]
q4_0 = { file = "Q4_0/huge-00001-of-00002.gguf" }
"""

PINNED = f"""\
# Models.

[models.tiny]
name = "Tiny"
repo = "org/tiny-GGUF"  # theirs
revision = "new"
context = 2048
[models.tiny.files]
q4_0 = {{ file = "tiny-q4_0.gguf", size_bytes = 4, sha256 = "{"4" * 64}" }}
q8_0 = {{ file = "tiny-q8_0.gguf", size_bytes = 8, sha256 = "{"8" * 64}" }}

# One of several parts

[models."huge-1.5t"]
repo = "org/huge-GGUF"
revision = "newer"
[models."huge-1.5t".files]
q4_0 = {{ file = "Q4_0/huge-00001-of-00002.gguf", size_bytes = 42, sha256 = "{"1" * 64}" }}
"""


class FakeHub:
    """Knows two repositories, but for what it is told to lack."""

    def __init__(self, lacks: Sequence[str] = ()) -> None:
        self._lacks = lacks
        self._repositories = {
            "org/tiny-GGUF": ("new", {"tiny-q4_0.gguf": (4, "4"), "tiny-q8_0.gguf": (8, "8")}),
            "org/huge-GGUF": (
                "newer",
                {
                    "Q4_0/huge-00001-of-00002.gguf": (20, "1"),
                    "Q4_0/huge-00002-of-00002.gguf": (22, "2"),
                },
            ),
        }

    def repository(self, repo: str) -> Repository | None:
        if repo in self._lacks:
            return None
        revision, files = self._repositories[repo]
        blobs = {
            path: Blob(size_bytes, digit * 64)
            for path, (size_bytes, digit) in files.items()
            if path not in self._lacks
        }
        return Repository(revision, blobs)


def test_everything_is_filled_in_and_comments_and_order_stay() -> None:
    pinned = pin(REGISTRY, FakeHub())
    assert pinned.text == PINNED
    assert pinned.missing == []
    assert "tiny: revision ? -> new" in pinned.changed
    assert "tiny: q8_0: size_bytes 5 -> 8" in pinned.changed
    assert "huge-1.5t: revision old -> newer" in pinned.changed


def test_what_is_pinned_stays_as_it_is() -> None:
    pinned = pin(PINNED, FakeHub())
    assert (pinned.text, pinned.changed, pinned.missing) == (PINNED, [], [])


@pytest.mark.parametrize(
    ("lacks", "said"),
    [
        ("org/huge-GGUF", "huge-1.5t: org/huge-GGUF is not on the hub"),
        (
            "Q4_0/huge-00002-of-00002.gguf",
            "huge-1.5t: org/huge-GGUF has no Q4_0/huge-00002-of-00002.gguf",
        ),
    ],
)
def test_an_entry_that_lacks_a_file_is_named_and_left_as_it_is(lacks: str, said: str) -> None:
    pinned = pin(REGISTRY, FakeHub([lacks]))
    assert pinned.missing == [said]
    assert pinned.text.split("# One of")[0] == PINNED.split("# One of")[0]
    assert pinned.text.split("# One of")[1] == REGISTRY.split("# One of")[1]


def test_the_parts_of_a_split_model() -> None:
    assert parts("a.gguf") == ["a.gguf"]
    assert parts("a/b-00001-of-00003.gguf") == [f"a/b-0000{i}-of-00003.gguf" for i in (1, 2, 3)]


@pytest.mark.parametrize(
    ("arguments", "lacks", "code", "text"),
    [
        ([], [], 0, PINNED),
        (["--check"], [], 0, REGISTRY),
        (["--check"], ["tiny-q4_0.gguf"], 1, REGISTRY),
    ],
)
def test_the_script(
    arguments: list[str],
    lacks: list[str],
    code: int,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    registry = tmp_path / "models.toml"
    registry.write_text(REGISTRY)
    monkeypatch.setattr(pin_models, "REGISTRY", registry)
    monkeypatch.setattr(pin_models, "HuggingFace", lambda: FakeHub(lacks))
    monkeypatch.setattr("sys.argv", ["pin_models", *arguments])
    assert pin_models.main() == code
    assert registry.read_text() == text
    printed = capsys.readouterr()
    assert "huge-1.5t: q4_0: size_bytes ? -> 42" in printed.out
    assert ("tiny-q4_0.gguf" in printed.err) == bool(lacks)


def test_a_hub_that_does_not_answer_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["pin_models", "--check"])
    assert pin_models.main() == 2  # HF_HUB_OFFLINE is set in tests
    assert capsys.readouterr().err.startswith("error: the hub does not answer: ")
