"""Whether two vocabularies are one, so that one model can guess for the other."""

from typing import Protocol

from specli.errors import PairError

MAX_SIZE_DIFFERENCE = 128  # padding of the embedding, as llama.cpp allows it
FIRST_COMPARED_ID = 5  # the ids before it are special tokens that do not occur in texts

_TYPES = {0: "none", 1: "SPM", 2: "BPE", 3: "WPM", 4: "UGM", 5: "RWKV", 6: "PLAMO2"}


class Vocabulary(Protocol):
    """What a comparison needs to know. type: llama.cpp's llama_vocab_type."""

    @property
    def type(self) -> int: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def bos(self) -> int: ...
    @property
    def eos(self) -> int: ...
    @property
    def add_bos(self) -> bool: ...
    @property
    def add_eos(self) -> bool: ...

    def text(self, token: int) -> bytes:
        """Return a token as the vocabulary spells it."""


def check_pair(target: Vocabulary, draft: Vocabulary) -> None:
    """Raise PairError with the first difference that makes a draft useless for a target."""
    if target.type != draft.type:
        raise _mismatch(
            f"the target's vocabulary is {_TYPES.get(target.type, target.type)}, "
            f"the draft's {_TYPES.get(draft.type, draft.type)}"
        )
    if abs(target.n_tokens - draft.n_tokens) > MAX_SIZE_DIFFERENCE:
        raise _mismatch(
            f"the target knows {target.n_tokens} tokens, the draft {draft.n_tokens}; "
            f"they may differ by {MAX_SIZE_DIFFERENCE}"
        )
    for name in ("bos", "eos"):
        adds = getattr(target, f"add_{name}"), getattr(draft, f"add_{name}")
        ids = getattr(target, name), getattr(draft, name)
        if any(adds) and (adds[0] != adds[1] or ids[0] != ids[1]):
            raise _mismatch(
                f"{name.upper()} is {_added(ids[0], adds[0])} in the target, "
                f"{_added(ids[1], adds[1])} in the draft"
            )
    for token in range(FIRST_COMPARED_ID, min(target.n_tokens, draft.n_tokens)):
        texts = target.text(token), draft.text(token)
        if texts[0] != texts[1]:
            raise _mismatch(
                f"token {token} is {_quoted(texts[0])} in the target, {_quoted(texts[1])} in the "
                "draft"
            )


def _mismatch(what: str) -> PairError:
    return PairError(
        f"this draft cannot guess for this target: {what}",
        "choose a draft of the target's own family, or use --draft ngram",
    )


def _added(token: int, added: bool) -> str:
    return f"{token}, {'added' if added else 'not added'}"


def _quoted(text: bytes) -> str:
    return repr(text.decode("utf-8", "replace"))
