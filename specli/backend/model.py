"""A GGUF model: its weights, its vocabulary, its chat template."""

import ctypes
import os
from collections.abc import Callable
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, Self

from specli.backend.library import last_errors, llama
from specli.errors import Interrupted, ModelError
from specli.files import open_regular


class Vocabulary:
    """The tokens of a model. Valid as long as the model is open."""

    def __init__(self, handle: Any) -> None:
        self._lib = llama()
        self.handle = handle
        self.type = int(self._lib.llama_vocab_type(handle))
        self.n_tokens = int(self._lib.llama_vocab_n_tokens(handle))
        self.bos = int(self._lib.llama_vocab_bos(handle))
        self.eos = int(self._lib.llama_vocab_eos(handle))
        self.add_bos = bool(self._lib.llama_vocab_get_add_bos(handle))
        self.add_eos = bool(self._lib.llama_vocab_get_add_eos(handle))

    @cached_property
    def eog(self) -> frozenset[int]:
        """The tokens that end a generation."""
        is_eog = self._lib.llama_vocab_is_eog
        return frozenset(i for i in range(self.n_tokens) if is_eog(self.handle, i))

    @property
    def tokens(self) -> list[bytes]:
        """All tokens as the vocabulary spells them; that takes a tenth of a second."""
        get_text = self._lib.llama_vocab_get_text
        return list(map(get_text, repeat(self.handle), range(self.n_tokens)))

    def text(self, token: int) -> bytes:
        """Return a token as the vocabulary spells it; empty where there is no such token."""
        if not 0 <= token < self.n_tokens:
            return b""
        return self._lib.llama_vocab_get_text(self.handle, token) or b""

    def piece(self, token: int) -> bytes:
        """Return the bytes that a token stands for in a text; none for control tokens."""
        size = 32
        while True:
            buffer = ctypes.create_string_buffer(size)
            n = self._lib.llama_token_to_piece(self.handle, token, buffer, size, 0, False)
            if n >= 0:
                return buffer.raw[:n]
            size = -n

    def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a text, special ones recognised, with exactly one BOS if wanted."""
        data = text.encode("utf-8", "replace")
        size = len(data) + 8
        while True:
            buffer = (ctypes.c_int32 * size)()
            n = self._lib.llama_tokenize(self.handle, data, len(data), buffer, size, False, True)
            if n >= 0:
                break
            size = -n
        tokens = list(buffer[:n])
        if self.add_bos and tokens[:1] != [self.bos]:
            tokens.insert(0, self.bos)
        return tokens


def go_on(share: float) -> bool:
    """Let a loading go on, however much is loaded."""
    return True


class LlamaModel:
    """Weights in memory. Close its contexts before it."""

    def __init__(
        self,
        path: Path,
        n_gpu_layers: int = -1,
        on_load: Callable[[float], bool] = go_on,
        *,
        mapped: bool = True,
        allocated: bool = True,
        vocabulary_only: bool = False,
        copy: Path | None = None,
    ) -> None:
        """Load a GGUF file.

        n_gpu_layers: how many layers go to the GPU; -1 for all. on_load: told how much is loaded, 0
        to 1; a False breaks the loading off. mapped: let llama.cpp map the file into memory, which
        starts at once and survives little memory; else read it, which holds no page twice where
        llama.cpp lays weights out anew for this CPU. allocated: False to reckon only what memory
        the model would take. vocabulary_only: load no weights. copy: a file to load in its stead.
        Raises ModelError, Interrupted.
        """
        _check_file(path)
        self._lib = llama()
        self.path = path
        self.is_copy = copy is not None
        self._n_gpu_layers = n_gpu_layers
        stopped = False

        def progress(share: float, _: ctypes.c_void_p) -> bool:
            nonlocal stopped
            stopped = not on_load(share)
            return not stopped

        params = self._lib.llama_model_default_params()
        params.n_gpu_layers = n_gpu_layers
        if not mapped or not allocated:
            params.load_mode = self._lib.LLAMA_LOAD_MODE_NONE
        params.no_alloc = not allocated
        params.vocab_only = vocabulary_only
        params.progress_callback = self._lib.llama_progress_callback(progress)
        last_errors()
        self.handle = self._lib.llama_model_load_from_file(os.fsencode(copy or path), params)
        if stopped:
            raise Interrupted("interrupted")
        if not self.handle:
            raise ModelError(
                f"{path}: llama.cpp cannot load this model: {last_errors()}",
                "if the file was downloaded, it may be incomplete: fetch it again",
            )
        self.vocabulary = Vocabulary(self._lib.llama_model_get_vocab(self.handle))

    @property
    def is_offloaded(self) -> bool:
        """Whether all its layers are for the GPU, where there is one."""
        return not 0 <= self._n_gpu_layers <= self.n_layers

    @property
    def n_ctx_train(self) -> int:
        """The context that the model was trained for."""
        return int(self._lib.llama_model_n_ctx_train(self.handle))

    @property
    def n_layers(self) -> int:
        """How many blocks it has."""
        return int(self._lib.llama_model_n_layer(self.handle))

    @property
    def architecture(self) -> str:
        """The name that llama.cpp has for the kind of network."""
        buffer = ctypes.create_string_buffer(128)
        self._lib.llama_model_meta_val_str(self.handle, b"general.architecture", buffer, 128)
        return buffer.value.decode("utf-8", "replace")

    @property
    def n_swa(self) -> int:
        """The width of its sliding attention window; 0 where it has none."""
        return int(self._lib.llama_model_n_swa(self.handle))

    @property
    def size_bytes(self) -> int:
        """The size of all its tensors."""
        return int(self._lib.llama_model_size(self.handle))

    @property
    def chat_template(self) -> str | None:
        """The Jinja template that the file brings along."""
        template = self._lib.llama_model_chat_template(self.handle, None)
        return template.decode("utf-8", "replace") if template else None

    @property
    def description(self) -> str:
        """Architecture, size and quantization in llama.cpp's words."""
        buffer = ctypes.create_string_buffer(256)
        self._lib.llama_model_desc(self.handle, buffer, 256)
        return buffer.value.decode("utf-8", "replace")

    def close(self) -> None:
        """Free the weights."""
        if self.handle:
            self._lib.llama_model_free(self.handle)
            self.handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_file(path: Path) -> None:
    """Say in one line what is wrong with a file before llama.cpp says it in twenty."""
    if path.is_dir():
        raise ModelError(f"{path}: is a directory, a GGUF file is wanted", "name the file in it")
    try:
        with open_regular(path) as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file") from None
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from None
    if not magic:
        raise ModelError(f"{path}: is empty, a GGUF file is wanted", "fetch it again")
    if magic != b"GGUF":
        raise ModelError(f"{path}: is not a GGUF file (it begins with {repr(magic)[1:]})")
