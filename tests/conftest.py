"""Models that several tests share, and a home that no test shares with the user."""

import os
import signal
from pathlib import Path

import pytest

from specli.models.registry import load_registry
from specli.models.store import locate
from tests import tiny_gguf

# A terminal of a test has a size of its own, and the many processes that tests start do not
# compile all of specli anew.
for _name in ("COLUMNS", "LINES", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(_name, None)
# Several workers and their processes share the cores: idle threads that spin would take them away.
# Before numpy and llama.cpp are imported, which read it then.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What a shell starts in the background, or nohup, ignores signals: tests of them would hang.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _name in ("SIGHUP", "SIGQUIT"):
    if hasattr(signal, _name):
        signal.signal(getattr(signal, _name), signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from the user's files and from the network."""
    for kind in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tiny random models: target, draft and those that go wrong with them."""
    folder = tmp_path_factory.mktemp("tiny")
    noise = tiny_gguf.DRAFT_NOISE
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    template += "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    tiny_gguf.write_llama(folder / "target.gguf", chat_template=template)
    tiny_gguf.write_llama(folder / "draft.gguf", noise=noise, chat_template=template)
    tiny_gguf.write_llama(folder / "hopeless.gguf", seed=9)
    tiny_gguf.write_llama(folder / "padded.gguf", noise=noise, n_vocab=340)
    tiny_gguf.write_llama(folder / "larger.gguf", noise=noise, n_vocab=500)
    tiny_gguf.write_llama(folder / "renamed.gguf", noise=noise, replace={300: "other"})
    tiny_gguf.write_llama(folder / "no_bos.gguf", noise=noise, add_bos=False)
    tiny_gguf.write_llama(folder / "no_template.gguf")
    tiny_gguf.write_swa(folder / "swa.gguf", chat_template=template)
    tiny_gguf.write_swa(folder / "swa_draft.gguf", noise=noise)
    tiny_gguf.write_recurrent(folder / "recurrent.gguf", chat_template=template)
    tiny_gguf.write_hybrid(folder / "hybrid.gguf", chat_template=template)
    return folder


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct, from the wheel that the set-up installs."""
    return locate("demo", load_registry(), offline=True).path
