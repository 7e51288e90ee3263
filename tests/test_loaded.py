"""Models are loaded side by side."""

from collections.abc import Callable
from pathlib import Path

import pytest

from specli.assemble import Pair, open_session
from specli.backend.model import LlamaModel
from specli.errors import Interrupted, ModelError, SpecliError
from specli.loaded import load_models
from specli.models.store import Located
from specli.settings import Settings


@pytest.fixture
def open_models(monkeypatch: pytest.MonkeyPatch) -> set[LlamaModel]:
    """Those that were loaded and not closed."""
    held: set[LlamaModel] = set()
    load, close = LlamaModel.__init__, LlamaModel.close

    def loading(self: LlamaModel, *args: object, **options: object) -> None:
        load(self, *args, **options)  # type: ignore[arg-type]
        held.add(self)

    def closing(self: LlamaModel) -> None:
        close(self)
        held.discard(self)

    monkeypatch.setattr(LlamaModel, "__init__", loading)
    monkeypatch.setattr(LlamaModel, "close", closing)
    return held


def located(path: Path) -> Located:
    return Located(path.stem, path)


def load(target: Path, *drafts: Path, **options: object) -> set[str]:
    """Load them and say which are there."""
    given = located(target), [located(draft) for draft in drafts], Settings(n_ctx=64), 4
    with load_models(*given, **options) as models:  # type: ignore[arg-type]
        return {models.target_name, *(path.stem for path in models.drafts)}


def cut(path: Path, folder: Path) -> Path:
    broken = folder / f"cut-{path.name}"
    broken.write_bytes(path.read_bytes()[:-1000])
    return broken


def test_all_are_loaded_and_told_of_as_one(tiny: Path, open_models: set[LlamaModel]) -> None:
    told: list[tuple[str, float]] = []
    on_load = lambda *args: told.append(args)  # noqa: E731
    found = load(tiny / "target.gguf", tiny / "draft.gguf", tiny / "swa.gguf", on_load=on_load)
    assert found == {"target", "draft", "swa"}
    assert {names for names, _ in told} == {"target and draft and swa"}
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert not open_models


@pytest.mark.parametrize("broken", ["target", "draft"])
def test_one_that_cannot_be_loaded_is_blamed_and_the_other_let_go(
    tiny: Path, tmp_path: Path, broken: str, open_models: set[LlamaModel]
) -> None:
    paths = {name: tiny / f"{name}.gguf" for name in ("target", "draft")}
    paths[broken] = cut(paths[broken], tmp_path)
    with pytest.raises(ModelError, match=rf"cut-{broken}\.gguf: llama\.cpp cannot load.*: .+"):
        load(paths["target"], paths["draft"])
    assert not open_models


def _stop() -> Callable[[], bool]:
    return lambda: True


def _fail() -> Callable[[], bool]:
    def interrupted() -> bool:
        raise SpecliError("enough")

    return interrupted


@pytest.mark.parametrize(("make", "error"), [(_stop, Interrupted), (_fail, SpecliError)])
def test_what_ends_the_loading_lets_all_go(
    tiny: Path,
    open_models: set[LlamaModel],
    make: Callable[[], Callable[[], bool]],
    error: type[Exception],
) -> None:
    with pytest.raises(error):
        load(tiny / "target.gguf", tiny / "draft.gguf", interrupted=make())
    assert not open_models


@pytest.mark.parametrize(("k", "names"), [(0, {"target"}), (1, {"target", "draft"})])
def test_a_draft_is_loaded_where_it_may_guess(
    tiny: Path, open_models: set[LlamaModel], k: int, names: set[str]
) -> None:
    pair = Pair(located(tiny / "target.gguf"), located(tiny / "draft.gguf"))
    with open_session(pair, Settings(n_ctx=64, n_threads=1, k=k)) as session:
        assert {model.path.stem for model in open_models} == names
        assert session.method == ("draft" if k else "none")


def test_without_guesses_a_draft_need_not_be_there(tiny: Path) -> None:
    pair = Pair(located(tiny / "target.gguf"), located(tiny / "nowhere.gguf"))
    with open_session(pair, Settings(n_ctx=64, n_threads=1, k=0)) as session:
        assert session.method == "none"
