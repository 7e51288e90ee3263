"""A vocabulary as a GGUF header describes it, without llama.cpp.

The defaults are llama.cpp's (llama_vocab::impl::load); files made since 2024 state most of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specli.errors import ModelError
from specli.models.header import Header, read_header

# tokenizer.ggml.model -> llama_vocab_type, BOS, EOS, whether BOS and EOS are added
_DEFAULTS = {
    "llama": (1, 1, 2, True, False),
    "gpt2": (2, 11, 11, False, False),
    "gemma4": (2, 2, 1, True, False),
    "bert": (3, 101, -1, True, False),
    "t5": (4, -1, 1, False, True),
    "rwkv": (5, -1, -1, False, False),
    "plamo2": (6, 1, 2, False, False),
}
_NONE = (0, -1, -1, False, False)
# Pre-tokenizers whose models begin with a BOS even where the file does not say so.
_PRE_WITH_BOS = {
    *("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
    *("jina-v5-nano", "tekken", "chameleon"),
}


@dataclass(frozen=True, slots=True)
class HeaderVocabulary:
    """The tokens of a model, read from its header."""

    type: int
    bos: int
    eos: int
    add_bos: bool
    add_eos: bool
    tokens: tuple[bytes, ...]

    @property
    def n_tokens(self) -> int:
        """How many tokens there are."""
        return len(self.tokens)


def vocabulary_of(header: Header) -> HeaderVocabulary:
    """Return the vocabulary of a model. Raises ModelError where it makes no sense."""
    values = header.values
    tokens = values.get("tokenizer.ggml.tokens", [])
    model = values.get("tokenizer.ggml.model", "none")
    if not isinstance(model, str) or not isinstance(tokens, list) or not _are_texts(tokens):
        raise ModelError("its header describes no vocabulary", "fetch it again")
    kind, bos, eos, add_bos, add_eos = _DEFAULTS.get(model, _NONE)
    if kind == 2 and values.get("tokenizer.ggml.pre") in _PRE_WITH_BOS:
        add_bos = True
    return HeaderVocabulary(
        type=kind,
        bos=values.get("tokenizer.ggml.bos_token_id", bos),
        eos=values.get("tokenizer.ggml.eos_token_id", eos),
        add_bos=values.get("tokenizer.ggml.add_bos_token", add_bos) or model == "gemma4",
        add_eos=values.get("tokenizer.ggml.add_eos_token", add_eos),
        tokens=tuple(tokens),
    )


def check_tokens(path: Path) -> None:
    """Raise ModelError where two tokens of a file are equal: llama.cpp ends the process then.

    Of a file whose header cannot be read, loading says what is wrong.
    """
    try:
        tokens = vocabulary_of(read_header(path)).tokens
    except ModelError:
        return
    if found := equal_tokens(tokens):
        said = tokens[found[1]].decode("utf-8", "replace")
        raise ModelError(
            f"{path}: its tokens {found[0]} and {found[1]} are both {said!r}, which llama.cpp"
            " cannot load",
            "fetch it again, or convert it anew",
        )


def equal_tokens(tokens: Sequence[bytes]) -> tuple[int, int] | None:
    """Return the first two that are equal to llama.cpp, which has a name for each empty one."""
    if len(set(tokens)) == len(tokens) and b"" not in tokens:
        return None
    seen: dict[bytes, int] = {}
    for i, token in enumerate(tokens):
        first = seen.setdefault(token or b"[EMPTY_%d]" % i, i)
        if first != i:
            return first, i
    return None


def _are_texts(tokens: list[object]) -> bool:
    return not tokens or isinstance(tokens[0], bytes)  # all items of an array are of one kind
