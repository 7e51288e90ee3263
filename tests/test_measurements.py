"""What is learned in one session is there in the next, and never in the way."""

import json
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from platformdirs import user_cache_path

from specli.assemble import Pair, open_session
from specli.engine.acceptance import DRAWN_RATES, N_BINS, TRUE_RATES, Acceptance
from specli.engine.costs import CostCurve
from specli.engine.planner import AutoPlanner
from specli.learned import Learned
from specli.measurements import Measurements
from specli.models.store import Located
from specli.settings import SamplingSettings, Settings


def files() -> list[Path]:
    return sorted(user_cache_path("specli").rglob("*"))


def test_what_was_saved_is_loaded_by_the_same_identity_only() -> None:
    Measurements({"target": "a"}).save({"x": [1, 2]})
    assert Measurements({"target": "a"}).load() == {"x": [1, 2]}
    assert Measurements({"target": "b"}).load() == {}


DEEP = pytest.param(b"[" * 100_000, id="deep")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b'{"identity": 1}', DEEP])
def test_a_broken_file_is_no_file(content: bytes) -> None:
    kept = Measurements({"target": "a"})
    kept.save({"x": 1})
    (file,) = [path for path in files() if path.is_file()]
    file.write_bytes(content)
    assert kept.load() == {}
    kept.save({"x": 2})
    assert kept.load() == {"x": 2}


def test_a_folder_that_cannot_be_written_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    Measurements({}).save({"x": 1})
    assert Measurements({}).load() == {}


def run(tiny: Path, draft: str, temperature: float = 0.0) -> AutoPlanner:
    settings = Settings(sampling=SamplingSettings(temperature), n_threads=1)
    pair = Pair(Located("target", tiny / "target.gguf"), Located("draft", tiny / draft))
    with open_session(pair, settings) as session:
        *_, done = session.answerer.complete("Once upon a time", 40)
        planner = session.answerer.decoder.planner
    assert isinstance(planner, AutoPlanner)
    assert done.stats.costs is not None  # type: ignore[union-attr]
    assert done.stats.costs.target_s[1] > 0  # type: ignore[union-attr]
    return planner


def test_a_session_keeps_what_it_learned_for_its_own_pair(tiny: Path) -> None:
    run(tiny, "draft.gguf")
    assert len([path for path in files() if path.suffix == ".json"]) == 1
    first = run(tiny, "draft.gguf").costs()
    assert len(first.target_s) > 5
    run(tiny, "hopeless.gguf")
    assert len([path for path in files() if path.suffix == ".json"]) == 2


def test_costs_are_the_same_at_every_temperature_acceptance_is_not(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for temperature in (0.0, 1.0, 0.0):
        run(tiny, "draft.gguf", temperature)
    (file,) = [path for path in files() if path.suffix == ".json"]
    learned = json.loads(file.read_text())["learned"]
    assert len(learned["acceptance"]) == 2
    monkeypatch.setattr("specli.learned._N_SAMPLINGS", 3)
    for temperature in (0.2, 0.4, 0.6, 0.8):
        run(tiny, "draft.gguf", temperature)
    learned = json.loads(file.read_text())["learned"]
    assert [key.split()[0] for key in learned["acceptance"]] == ["0.4", "0.6", "0.8"]


@pytest.mark.parametrize(
    "held",
    [
        {"target_s": {"one": 1}},
        {"target_s": {"1": "x"}},
        {"target_s": {"1": -1.0}},
        {"target_s": {"1": 5e-324, "2": 5e-324}},
        {"target_s": {"2": 0.5}},
        {"target_s": {"1": 10**400}},
        {"target_s": {"1": 0.01, str(10**400): 5.0}},
        {"target_s": {"1": 0.01}, "draft_s": {"1": 0.01, "-3": 5.0}},
        {"target_s": 7, "draft_s": None},
        {"acceptance": {"draft": {"judged": [1.0], "seen": [1.0]}}},
        {"acceptance": []},
    ],
    ids=str,
)
def test_nonsense_in_a_file_of_ours_is_measured_anew(
    tiny: Path, held: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Measurements, "load", lambda self: held)
    run(tiny, "draft.gguf")


SOUND: dict[str, object] = {
    **{name: [1.0] * N_BINS for name in ("logits", "outlook")},
    "texts": [3.0, 3.0],
}
UNSOUND: list[object] = ["x", None, [1.0], [float("nan")] * N_BINS, {}, [10**400] * N_BINS]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "unsound",
    [
        *({name: values} for name in ("logits", "outlook") for values in UNSOUND),
        *({"outlook": values} for values in ([1e308] * N_BINS, [-1.0] * N_BINS, [0.0] * N_BINS)),
        *({"texts": values} for values in UNSOUND),
        *({"texts": [1.0, n]} for n in (-1.0, float("nan"), 1e9, "x", None, 10**400)),
    ],
    ids=lambda value: str(value)[:30],
)
def test_nonsense_about_a_draft_is_as_good_as_nothing(
    unsound: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = " ".join(map(str, astuple(SamplingSettings())))
    held = {"acceptance": {key: SOUND | unsound}}
    monkeypatch.setattr(Measurements, "load", lambda self: held)
    draft = Learned({}, SamplingSettings()).acceptance["draft"]
    assert draft.known() == Acceptance(DRAWN_RATES).known()


def test_what_is_sound_of_a_draft_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    key = " ".join(map(str, astuple(SamplingSettings())))
    monkeypatch.setattr(Measurements, "load", lambda self: {"acceptance": {key: SOUND}})
    draft = Learned({}, SamplingSettings()).acceptance["draft"]
    assert draft.known() != Acceptance(DRAWN_RATES).known()


def test_the_end_of_a_text_says_little_of_the_next_one() -> None:
    """A draft that is right in seven of ten guesses, and in all of a list at the end."""
    draft, rng = Acceptance(DRAWN_RATES), np.random.default_rng(1)
    for _ in range(600):
        draft.observe(0.85, bool(rng.random() < 0.7))
    for _ in range(100):
        draft.observe(0.85, True)
    assert draft.probability(0.85) > 0.95
    again = Acceptance(DRAWN_RATES, draft.known())
    draft.begin()
    for other in (draft, again):
        assert other.probability(0.85) == pytest.approx(0.78, abs=0.03)
        for _ in range(20):
            other.observe(0.85, False)  # and yet another text is soon found out
        assert other.probability(0.85) < 0.35


def test_what_is_learned_of_many_texts_is_their_mean_and_a_short_one_moves_it_little() -> None:
    draft = Acceptance(DRAWN_RATES)
    for i in range(30):
        draft.begin()
        for j in range(60):
            draft.observe(0.85, j % 10 < (3 if i % 2 else 7))
    draft.begin()
    mean = draft.probability(0.85)
    assert mean == pytest.approx(0.5, abs=0.06)
    draft.observe(0.85, True)
    draft.begin()
    draft.begin()  # a text without guesses tells nothing
    assert draft.probability(0.85) == pytest.approx(mean, abs=0.02)


def test_texts_of_few_guesses_do_not_keep_a_long_one_from_teaching() -> None:
    draft = Acceptance(DRAWN_RATES)
    for _ in range(25):
        draft.begin()
        draft.see(0.4)
    for _ in range(6):
        draft.begin()
        for _ in range(300):
            draft.observe(0.995, False)
    draft.begin()
    assert draft.expected() < 0.3


def test_other_settings_in_a_session_forget_nothing() -> None:
    sampling, curve = SamplingSettings(), CostCurve({1: 1.0})
    learned = Learned({}, sampling)
    for _ in range(60):
        learned.acceptance["draft"].observe(0.85, False)
    for _ in range(9):
        learned.save(curve, None)
        texts = learned.acceptance["draft"].known()["texts"]
        rate = Learned({}, sampling, goes_on=True).acceptance["draft"].probability(0.85)
        learned = Learned({}, sampling, goes_on=True)
        assert learned.acceptance["draft"].known()["texts"] == texts
        assert learned.acceptance["draft"].probability(0.85) == pytest.approx(rate, abs=0.001)
    assert Learned({}, sampling).acceptance["draft"].known()["texts"][0] < texts[0]


def test_what_does_not_last_begins_with_the_first_ideas() -> None:
    found = Acceptance(TRUE_RATES, lasts=False)
    first = found.probability(0.95)
    for _ in range(60):
        found.observe(0.95, False)
    assert found.probability(0.95) < 0.2
    found.begin()
    assert found.probability(0.95) == first


def test_what_was_learned_of_a_draft_fades_with_each_session_that_does_not_ask_it() -> None:
    typical, draft = Acceptance(DRAWN_RATES), Acceptance(DRAWN_RATES)
    for _ in range(5):
        draft.begin()
        for _ in range(40):
            draft.observe(0.9, False)
    rates = [draft.probability(0.9)]
    for _ in range(30):
        draft = Acceptance(DRAWN_RATES, draft.known())
        rates.append(draft.probability(0.9))
    assert rates == sorted(rates)
    assert rates[1] < 0.5 < rates[-1] == pytest.approx(typical.probability(0.9), abs=0.03)


def test_what_prompts_take_is_kept() -> None:
    target, draft = CostCurve({1: 1.0, 8: 2.0}, all_rows=True), CostCurve({1: 0.1, 8: 0.3})
    for curve in (target, draft):
        curve.read(256, 5.0)
    Learned({}, SamplingSettings()).save(target, draft)
    again = Learned({}, SamplingSettings())
    assert again.target_each_s == pytest.approx(4.0 / 255)
    assert again.draft_each_s == pytest.approx(4.9 / 255)
    assert again.target_s == pytest.approx({1: 1.0, 8: 2.0})


@pytest.mark.parametrize("each_s", [-1.0, float("nan"), 1e9, "x", None, [], {}])
def test_nonsense_about_prompts_is_as_good_as_nothing(
    each_s: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Measurements, "load", lambda self: {"draft_each_s": each_s})
    assert Learned({}, SamplingSettings()).draft_each_s == 0.0
