"""Whether two vocabularies are one, so that one model can guess for the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from specli.errors import PairError
from specli.models.header import Header

MAX_SIZE_DIFFERENCE = 128  # padding of the embedding, as llama.cpp allows it
FIRST_COMPARED_ID = 5  # the ids before it are special tokens that do not occur in texts
MAX_SHOWN = 5

_TYPES = {0: "none", 1: "SPM", 2: "BPE", 3: "WPM", 4: "UGM", 5: "RWKV", 6: "PLAMO2"}
_PAIR_HINT = "choose a draft of the target's own family, or ngram"

# Models that read another model's hidden states: no draft by themselves.
SIDECARS = {
    "gemma4-assistant": "a multi-token-prediction (MTP) head",
    "eagle3": "an EAGLE-3 head",
    "dflash": "a DFlash head",
    "medusa": "a set of Medusa heads",
}

Verdict: TypeAlias = Literal["identical", "padded", "specials differ", "different"]


class Vocabulary(Protocol):
    """What a comparison needs to know. type: llama.cpp's llama_vocab_type. tokens: as spelt."""

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
    @property
    def tokens(self) -> Sequence[bytes]: ...


@dataclass(frozen=True, slots=True)
class Difference:
    """A token that two vocabularies spell differently."""

    token: int
    target: str
    draft: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two vocabularies relate.

    reason: why the draft cannot guess for the target, "" where it can. differences: the first
    tokens spelt differently, the harmless special ones among them.
    """

    verdict: Verdict
    reason: str
    size_difference: int
    differences: tuple[Difference, ...]

    @property
    def works(self) -> bool:
        """Whether the draft can guess for the target."""
        return not self.reason


def compare(target: Vocabulary, draft: Vocabulary) -> Comparison:
    """Compare two vocabularies as llama.cpp does, but say everything that differs."""
    size_difference = draft.n_tokens - target.n_tokens
    comparable = target.type == draft.type and abs(size_difference) <= MAX_SIZE_DIFFERENCE
    both = zip(target.tokens, draft.tokens, strict=False) if comparable else ()
    differences = tuple(
        Difference(token, *(text.decode("utf-8", "replace") for text in texts))
        for token, texts in enumerate(both)
        if texts[0] != texts[1]
    )
    serious = [found for found in differences if found.token >= FIRST_COMPARED_ID]
    reason = _reason(target, draft, serious[0] if serious else None)
    verdict: Verdict = "identical"
    if reason:
        verdict = "different"
    elif differences or (target.bos, target.eos) != (draft.bos, draft.eos):
        verdict = "specials differ"
    elif size_difference:
        verdict = "padded"
    shown = (*serious[:MAX_SHOWN], *differences)[:MAX_SHOWN]
    return Comparison(verdict, reason, size_difference, shown)


def check_pair(target: Vocabulary, draft: Vocabulary) -> None:
    """Raise PairError with the first difference that makes a draft useless for a target."""
    if reason := compare(target, draft).reason:
        raise PairError(f"this draft cannot guess for this target: {reason}", _PAIR_HINT)


def check_sidecar(architecture: str, name: str) -> None:
    """Raise PairError where a model is no draft by itself but a part of its target."""
    if kind := SIDECARS.get(architecture):
        raise PairError(
            f"{name} is no draft model but {kind}, which specli cannot use yet", _PAIR_HINT
        )


def rollback(header: Header) -> str:
    """Say how a model's memory takes rejected tokens back; "" where it cannot."""
    if any(f".{kind}." in key for key in header.values for kind in ("ssm", "wkv", "shortconv")):
        return ""
    if window := header.of_architecture("attention.sliding_window"):
        return f"removal within its sliding window of {window} tokens"
    return "removal"


def _reason(target: Vocabulary, draft: Vocabulary, first: Difference | None) -> str:
    if target.type != draft.type:
        return (
            f"the target's vocabulary is {_TYPES.get(target.type, target.type)}, "
            f"the draft's {_TYPES.get(draft.type, draft.type)}"
        )
    if abs(target.n_tokens - draft.n_tokens) > MAX_SIZE_DIFFERENCE:
        return (
            f"the target knows {target.n_tokens} tokens, the draft {draft.n_tokens}; "
            f"they may differ by {MAX_SIZE_DIFFERENCE}"
        )
    for name, adds, ids in (
        ("BOS", (target.add_bos, draft.add_bos), (target.bos, draft.bos)),
        ("EOS", (target.add_eos, draft.add_eos), (target.eos, draft.eos)),
    ):
        if any(adds) and (adds[0] != adds[1] or ids[0] != ids[1]):
            said = [f"{i}, {'added' if a else 'not added'}" for a, i in zip(adds, ids, strict=True)]
            return f"{name} is {said[0]} in the target, {said[1]} in the draft"
    if first:
        return (
            f"token {first.token} is {first.target!r} in the target, {first.draft!r} in the draft"
        )
    return ""
