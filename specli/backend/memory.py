"""What a model and its context will take: llama.cpp's own reckoning, without the weights."""

import ctypes
import re
from pathlib import Path

from specli.backend.context import ContextSettings, LlamaContext
from specli.backend.library import llama, log_lines
from specli.backend.model import LlamaModel
from specli.memory import Need
from specli.settings import context_size

_MIB = 1 << 20
# llama_kv_cache: size = 112.00 MiB (...), llama_memory_recurrent: size = 1.00 MiB (...)
_CACHE = re.compile(r"^llama_(?:kv_cache|memory)\w*:\s+size =\s+([\d.]+) MiB")
_BUFFER = re.compile(r":\s+(\S+)\s+(model|compute|output) buffer size =\s+([\d.]+) MiB")


def measure_need(path: Path, n_ctx: int | None, n_rows: int, n_gpu_layers: int) -> Need:
    """Return what a model with one context will take. Raises ModelError.

    n_ctx: tokens, as in Settings. n_rows: rows of logits.
    """
    with log_lines() as lines, LlamaModel(path, n_gpu_layers, allocated=False) as model:
        wanted = ContextSettings(context_size(n_ctx, model.n_ctx_train), n_rows, n_threads=1)
        with LlamaContext(model, wanted):
            weights, n_layers, n_ctx_train = model.size_bytes, model.n_layers, model.n_ctx_train
    buffers = [match for line in lines if (match := _BUFFER.search(line))]
    caches = [match for line in lines if (match := _CACHE.search(line))]
    return Need(
        weights_bytes=weights,
        cache_bytes=round(sum(float(match[1]) for match in caches) * _MIB),
        compute_bytes=round(
            sum(float(match[3]) for match in buffers if match[2] != "model") * _MIB
        ),
        n_ctx=wanted.n_ctx,
        n_gpu_layers=n_gpu_layers,
        n_layers=n_layers,
        n_ctx_train=n_ctx_train,
        repacked=any(match[1].endswith("_REPACK") for match in buffers),
    )


def gpu_free_bytes() -> int:
    """Return the free memory of all GPUs that llama.cpp sees; 0 where it sees none."""
    ggml = llama()._lib  # libllama, through which the libraries beneath it are reached too
    ggml.ggml_backend_dev_get.restype = ctypes.c_void_p
    ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
    total = 0
    for i in range(ggml.ggml_backend_dev_count()):
        device = ctypes.c_void_p(ggml.ggml_backend_dev_get(ctypes.c_size_t(i)))
        if ggml.ggml_backend_dev_type(device) == _GPU:
            free, whole = ctypes.c_size_t(), ctypes.c_size_t()
            ggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(whole))
            total += free.value
    return total


_GPU = 1  # enum ggml_backend_dev_type
