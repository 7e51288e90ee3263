"""One KV sequence of a model."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from specli.backend.library import last_errors, llama
from specli.backend.model import LlamaModel
from specli.engine.decode import never
from specli.engine.types import Rows
from specli.errors import CannotRewind, DecodeError, Interrupted, ModelError

# Most tokens in one decode of a prompt. A GPU gains from more; on a CPU it would cost memory only.
N_BATCH_CPU, N_BATCH_GPU = 256, 512
# So few tokens are decoded one by one on a GPU: a decode of the same shape as the last one finds
# its graph ready. Of a draft on an H200 it takes 1.1 ms; a batch and the two decodes after it, of
# which one is launched kernel by kernel and one is recorded, take 6.5 ms more than the two alone.
_SINGLY = 6


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """Size and speed of a context.

    n_ctx: tokens. n_rows: most rows of logits that one decode returns. n_threads: of the CPU.
    """

    n_ctx: int
    n_rows: int
    n_threads: int


class LlamaContext:
    """The engine's Model: appends tokens to one sequence and drops them from its end."""

    def __init__(
        self,
        model: LlamaModel,
        settings: ContextSettings,
        interrupted: Callable[[], bool] = never,
    ) -> None:
        """interrupted: asked while a prompt is evaluated; where it says yes, decode raises."""
        self._lib = llama()
        self._model = model
        self._on_gpu = bool(self._lib.llama_supports_gpu_offload())
        n_batch = N_BATCH_GPU if self._on_gpu else N_BATCH_CPU
        self.n_batch = min(n_batch, settings.n_ctx)
        self.n_rows = settings.n_rows
        self.prepares = self._on_gpu and not model.n_swa  # a window may be unable to drop padding
        self.goes_on = self._on_gpu and model.is_offloaded
        self.n_vocab = model.vocabulary.n_tokens
        params = self._lib.llama_context_default_params()
        params.n_ctx = settings.n_ctx
        params.n_batch = params.n_ubatch = self.n_batch
        params.n_outputs_max = params.n_outputs_max_per_seq = settings.n_rows
        params.n_threads = params.n_threads_batch = settings.n_threads
        params.swa_full = False
        last_errors()
        self.handle = self._lib.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise ModelError(
                f"{model.path}: no room for a context of {settings.n_ctx} tokens: {last_errors()}",
                "a smaller --ctx needs less memory",
            )
        self.n_ctx = min(settings.n_ctx, int(self._lib.llama_n_ctx(self.handle)))
        self.n_ctx_train = model.n_ctx_train
        self._memory = self._lib.llama_get_memory(self.handle)
        self._interrupted = interrupted
        self._abort = self._lib.ggml_abort_callback(lambda _: interrupted())
        self._no_abort = self._lib.ggml_abort_callback()
        self._batch = self._lib.llama_batch_init(self.n_batch, 0, 1)
        for i in range(self.n_batch):
            self._batch.n_seq_id[i] = 1
            self._batch.seq_id[i][0] = 0
        shape = (self.n_batch,)
        self._tokens = np.ctypeslib.as_array(self._batch.token, shape)
        self._positions = np.ctypeslib.as_array(self._batch.pos, shape)
        self._wanted = np.ctypeslib.as_array(self._batch.logits, shape)
        self._n_started = 0  # rows of the last decode
        self._address = 0  # where llama.cpp keeps the logits, and they as an array
        self._rows: Rows = np.empty((0, self.n_vocab), np.float32)

    @property
    def length(self) -> int:
        """Tokens that the sequence holds now."""
        return int(self._lib.llama_memory_seq_pos_max(self._memory, 0)) + 1

    def decode(self, tokens: Sequence[int], n_rows: int) -> Rows:
        """Append tokens; return the logits after each of the last n_rows, (n_rows, n_vocab).

        The rows are llama.cpp's own memory, valid until the next decode. Raises DecodeError, and
        Interrupted where no rows are wanted: only then is a decode long enough to break off. Then
        none of the tokens is held, and of a memory that cannot drop its end nothing is.
        """
        if self._on_gpu and n_rows == 1 and 1 < len(tokens) <= _SINGLY:
            for token in tokens[:-1]:
                self.decode([token], 1)
            tokens = tokens[-1:]
        self.start(tokens, n_rows)
        return self.finish() if n_rows else np.empty((0, self.n_vocab), np.float32)

    def start(self, tokens: Sequence[int], n_rows: int) -> None:
        """Begin a decode: a GPU goes on with it by itself. Raises as `decode` does."""
        start, n = self.length, len(tokens)
        if start + n > self.n_ctx:
            raise DecodeError(f"the context is full: {start} + {n} tokens of {self.n_ctx}")
        self._tokens[:n] = tokens
        self._positions[:n] = np.arange(start, start + n)
        self._wanted[:n] = 0
        self._wanted[n - n_rows : n] = 1
        self._batch.n_tokens = n
        # The callback is asked after every node of the graph: too dear where tokens are generated.
        abort = self._no_abort if n_rows else self._abort
        self._lib.llama_set_abort_callback(self.handle, abort, None)
        code = self._lib.llama_decode(self.handle, self._batch)
        if code != 0:
            self._drop_from(start)
        if code == 2:
            raise Interrupted("interrupted")
        if code != 0:
            raise DecodeError(_DECODE_ERRORS.get(code) or f"llama_decode: {code} {last_errors()}")
        self._n_started = n_rows

    def finish(self) -> Rows:
        """Wait for the decode that was started; return its rows."""
        address = ctypes.cast(self._lib.llama_get_logits(self.handle), ctypes.c_void_p).value
        if address is None:
            raise DecodeError("llama.cpp returned no logits")
        if address != self._address:
            size = self.n_rows * self.n_vocab
            logits = (ctypes.c_float * size).from_address(address)
            self._rows = np.ctypeslib.as_array(logits).reshape(self.n_rows, self.n_vocab)
            self._address = address
        return self._rows[: self._n_started]

    def truncate(self, length: int) -> None:
        """Drop all tokens from position `length` on. Raises CannotRewind, with nothing dropped."""
        if length == 0:
            self._lib.llama_memory_clear(self._memory, False)
            return
        # A sliding window forgets what lies before it; tokens that the next one attends to
        # cannot be brought back by dropping its successors.
        if (n_swa := self._model.n_swa) and length < self.length:
            first = int(self._lib.llama_memory_seq_pos_min(self._memory, 0))
            if first > 0 and first >= length - n_swa:
                raise CannotRewind(f"the sliding window has left position {length} behind")
        if not self._lib.llama_memory_seq_rm(self._memory, 0, length, -1):
            raise CannotRewind("this model's memory cannot drop the end of a sequence")

    def _drop_from(self, start: int) -> None:
        """Drop what a failed decode may have left: a recurrent memory counts it, half computed."""
        try:
            self.truncate(start)
        except CannotRewind:
            self.truncate(0)

    def can_rewind(self) -> bool:
        """Try it: decode two tokens and drop the second. Leaves the sequence empty."""
        if self.n_ctx < 2:
            return False
        self.truncate(0)
        token = max(self._model.vocabulary.bos, 0)
        self.decode([token, token], 1)
        try:
            self.truncate(1)
            return True
        except CannotRewind:
            return False
        finally:
            self.truncate(0)

    @property
    def state_bytes(self) -> int:
        """The size of what `state` returns."""
        return int(self._lib.llama_state_seq_get_size(self.handle, 0)) if self.handle else 0

    def state(self) -> NDArray[np.uint8]:
        """Return a copy of all that the sequence holds, empty where llama.cpp gives none."""
        data = np.empty(self.state_bytes, np.uint8)
        n = self._lib.llama_state_seq_get_data(self.handle, _bytes_of(data), data.size, 0)
        return data[:n]

    def restore(self, state: NDArray[np.uint8]) -> bool:
        """Hold what another sequence held; say whether that worked, else nothing is held.

        state: of the same model and the same size of context, whole: llama.cpp checks little.
        """
        self.truncate(0)
        if self._lib.llama_state_seq_set_data(self.handle, _bytes_of(state), state.size, 0):
            return True
        last_errors()
        self.truncate(0)
        return False

    def close(self) -> None:
        """Free the context."""
        if self.handle:
            self._lib.llama_batch_free(self._batch)
            self._lib.llama_free(self.handle)
            self.handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bytes_of(data: NDArray[np.uint8]) -> Any:
    return data.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))


_DECODE_ERRORS = {
    1: "llama.cpp found no room in the KV cache",
    -1: "llama.cpp refused the batch",
}
