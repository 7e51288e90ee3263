"""llama.cpp's samplers, made to tell the distribution that they draw from."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specli.backend.library import llama
from specli.engine.types import Dist, Row, certain
from specli.errors import DecodeError
from specli.settings import SamplingSettings


class LlamaSampler:
    """The engine's Sampler: a chain of llama.cpp's samplers, then a softmax over what survives."""

    def __init__(self, settings: SamplingSettings, n_vocab: int) -> None:
        self._lib = llama()
        self._settings = settings
        self._ids = np.arange(n_vocab, dtype=np.int32)
        self._candidates = np.zeros(n_vocab, _CANDIDATE)
        self._array = self._lib.llama_token_data_array()
        self._penalizes = settings.repeat_penalty != 1.0
        self._filters = settings.temperature > 0 and (
            settings.top_k > 0 or settings.top_p < 1.0 or settings.min_p > 0.0
        )
        self._chain = self._build()

    def dist(self, row: Row, history: Sequence[int]) -> Dist:
        """Return the distribution of the token that follows the history. row: (n_vocab,)."""
        if not self._penalizes and not self._filters:
            if self._settings.temperature == 0:
                return _best(self._ids, row)
            return self._softmax(self._ids[: len(row)], row)
        ids, logits = self._apply(row, history)
        if self._settings.temperature == 0:
            return _best(ids, logits)
        return self._softmax(ids, logits)

    def close(self) -> None:
        """Free the chain."""
        if self._chain:
            self._lib.llama_sampler_free(self._chain)
            self._chain = None

    def _build(self) -> Any:
        lib, settings = self._lib, self._settings
        chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        if self._penalizes:
            penalties = lib.llama_sampler_init_penalties(
                len(self._ids), settings.repeat_last_n, settings.repeat_penalty, 0.0, 0.0
            )
            lib.llama_sampler_chain_add(chain, penalties)
        if settings.temperature > 0:
            lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_top_k(settings.top_k))
            lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_top_p(settings.top_p, 1))
            lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_min_p(settings.min_p, 1))
        return chain

    def _apply(
        self, row: Row, history: Sequence[int]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return ids (increasing) and logits of the tokens that the chain lets through."""
        candidates = self._candidates[: len(row)]
        candidates["id"] = self._ids[: len(row)]
        candidates["logit"] = row
        array = self._array
        array.data = ctypes.cast(candidates.ctypes.data, type(array.data))
        array.size, array.selected, array.sorted = len(row), -1, False
        if self._penalizes:
            self._lib.llama_sampler_reset(self._chain)
            for token in history[-self._settings.repeat_last_n :]:
                self._lib.llama_sampler_accept(self._chain, token)
        self._lib.llama_sampler_apply(self._chain, ctypes.byref(array))
        kept = candidates[: array.size]
        order = np.argsort(kept["id"])
        return kept["id"][order], kept["logit"][order]

    def _softmax(self, ids: NDArray[np.int32], logits: NDArray[np.float32]) -> Dist:
        """Return the distribution of the logits divided by the temperature."""
        weights = logits.astype(np.float64)
        weights -= _number(weights.max())
        with np.errstate(over="ignore"):  # a tiny temperature: all but the best are impossible
            weights /= self._settings.temperature
        p = np.exp(weights, out=weights)
        p /= p.sum()
        return Dist(ids, p)


def _best(ids: NDArray[np.int32], logits: NDArray[np.float32]) -> Dist:
    at = logits.argmax()
    _number(logits[at])
    return certain(int(ids[at]))


def _number(best: np.floating) -> np.floating:
    """Return the best logit. Raises DecodeError where the model computed no numbers."""
    if not np.isfinite(best):
        raise DecodeError(f"the model computed {best} instead of logits", "is its file damaged?")
    return best


_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
