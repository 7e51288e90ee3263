"""What models will take, against what llama.cpp takes; what is said when it is too much."""

import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from specli.assemble import Pair, open_session
from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.library import log_lines
from specli.backend.memory import measure_need
from specli.backend.model import LlamaModel
from specli.cgroups import memory_free_bytes, memory_total_bytes
from specli.errors import ModelError
from specli.memory import Need, Room, check_fit, layers_that_fit
from specli.models.store import Located
from specli.settings import Settings

GIB = 1 << 30
_REPORT = re.compile(r"(?:model|compute|output|KV|RS) buffer size =\s+([\d.]+) MiB")


def reported_bytes(path: Path, n_ctx: int, mapped: bool) -> float:
    """Return what llama.cpp says that it has allocated for a model and its context."""
    with (
        log_lines() as lines,
        LlamaModel(path, mapped=mapped) as model,
        LlamaContext(model, ContextSettings(n_ctx, 4, 1)),
    ):
        pass
    return sum(float(match[1]) for line in lines if (match := _REPORT.search(line))) * (1 << 20)


def assert_close(path: Path) -> None:
    for n_ctx in (512, 2048):
        need = measure_need(path, n_ctx, 4, -1)
        reported = reported_bytes(path, n_ctx, mapped=not need.repacked)
        assert need.total_bytes == pytest.approx(reported, rel=0.1, abs=20_000)
        assert need.weights_bytes == pytest.approx(path.stat().st_size, rel=0.1)


@pytest.mark.parametrize("name", ["target", "larger", "swa", "recurrent", "hybrid"])
def test_estimates_of_tiny_models_of_each_memory_kind(tiny: Path, name: str) -> None:
    assert_close(tiny / f"{name}.gguf")


@pytest.mark.real
def test_estimate_of_smollm2(smollm2: Path) -> None:
    assert_close(smollm2)


MORE = sorted(Path(os.environ.get("SPECLI_TEST_MODELS", "/nowhere")).glob("*.gguf"))


@pytest.mark.real
@pytest.mark.parametrize("path", MORE, ids=lambda path: path.stem)
def test_estimates_of_more_models(path: Path) -> None:
    """SPECLI_TEST_MODELS names a folder of larger models; without it there are none."""
    assert_close(path)


def need(weights: float, cache: float = 0.0, n_layers: int = 32) -> Need:
    return Need(int(weights * GIB), int(cache * GIB), GIB // 8, 4096, n_layers)


def test_what_fits_passes() -> None:
    check_fit(need(4), need(1), Room(6 * GIB))
    on_gpu = replace(need(8), n_gpu_layers=16)  # half of its layers
    check_fit(on_gpu, None, Room(5 * GIB, gpu_bytes=5 * GIB))


def test_what_does_not_fit_is_refused_with_what_would() -> None:
    with pytest.raises(ModelError) as raised:
        check_fit(need(4, cache=4), need(1, cache=1), Room(8 * GIB), "big:q3_k_m")
    assert "these models need 11.0 GB (weights 5.4 GB, KV cache 5.4 GB" in raised.value.message
    assert "8.6 GB of memory is free" in raised.value.message
    match = re.search(r"--ctx (\d+) fits", raised.value.hint)
    assert match
    assert int(match[1]) == 2048  # 2.75 GiB left for caches of 5 GiB per 4096
    assert "big:q3_k_m fits" in raised.value.hint
    assert "--force" in raised.value.hint


def test_no_context_is_advised_that_the_model_was_not_trained_for() -> None:
    trained = replace(need(1, cache=400), n_ctx=16_000_000, n_ctx_train=32_768)
    with pytest.raises(ModelError) as raised:
        check_fit(trained, None, Room(8 * GIB))
    assert "--ctx 32768 fits" in raised.value.hint


def test_where_nothing_would_fit_it_says_so() -> None:
    with pytest.raises(ModelError) as raised:
        check_fit(need(40, cache=1), None, Room(8 * GIB))
    assert "a smaller model or a smaller quantization" in raised.value.hint
    assert "--ctx" not in raised.value.hint


def test_the_advice_is_never_what_was_asked_for() -> None:
    asked = Need(GIB, GIB // 4, 0, 2048, 32)
    with pytest.raises(ModelError) as raised:  # the draft has a context of its own, and costs most
        check_fit(asked, Need(GIB // 8, GIB, 0, 8192, 32), Room(2 * GIB))
    assert "--ctx" not in raised.value.hint
    assert "--draft ngram fits" in raised.value.hint


def test_a_gpu_that_is_too_small_is_told_how_many_layers_fit() -> None:
    whole = replace(need(8, cache=1), n_gpu_layers=-1)
    room = Room(16 * GIB, gpu_bytes=6 * GIB)
    with pytest.raises(ModelError) as raised:
        check_fit(whole, None, room)
    assert "and 6.4 GB on the GPU" in raised.value.message
    match = re.match(r"--gpu-layers (\d+) fits", raised.value.hint)
    assert match
    check_fit(replace(whole, n_gpu_layers=int(match[1])), None, room)
    with pytest.raises(ModelError):
        check_fit(replace(whole, n_gpu_layers=int(match[1]) + 1), None, room)
    check_fit(whole, None, Room(GIB, gpu_bytes=16 * GIB))  # and needs no more of the other memory


def test_a_container_is_the_machine(tmp_path: Path) -> None:
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (group / "memory.max").write_text("300000000\n")
    (group / "memory.current").write_text("200000000\n")
    (group / "memory.stat").write_text("anon 1\ninactive_file 50000000\n")
    assert memory_total_bytes(tmp_path) == 300_000_000
    assert memory_free_bytes(tmp_path) == 150_000_000


def test_layers_that_fit_on_a_gpu() -> None:
    assert layers_that_fit(need(32), 8 * GIB) == 7
    assert layers_that_fit(need(32), 80 * GIB) == 32
    assert layers_that_fit(need(32), 0) == 0


def test_a_machine_with_too_little_memory_refuses_before_loading(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = SimpleNamespace(available=1 << 20, total=1 << 30)
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    pair = Pair(Located("target", tiny / "target.gguf"), Located("draft", tiny / "draft.gguf"))
    with (
        pytest.raises(ModelError, match="MB of memory is free"),
        open_session(pair, Settings()),
    ):
        pass
    with open_session(pair, Settings(force=True)) as session:
        assert session.method == "both"
