"""What a user can choose about a session, as plain data."""

from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path

from specli.errors import UsageError

DEFAULT_TARGET = "demo"
DEFAULT_N_CTX = 4096
MAX_DRAFT_TOKENS = 64
THINK = ("show", "hide", "off")


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """How tokens are drawn, in llama.cpp's order: penalties, top-k, top-p, min-p, temperature.

    temperature 0 is the arg-max. top_k 0, top_p 1, min_p 0 and repeat_penalty 1 switch those off.
    repeat_last_n: how many of the last tokens are penalised.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64

    def __post_init__(self) -> None:
        """Raise UsageError where a value makes no sense."""
        _check("--temp", self.temperature, 0.0, None)
        _check_whole("--top-k", self.top_k, 0, 2**31 - 1)
        _check("--top-p", self.top_p, 0.0, 1.0)
        _check("--min-p", self.min_p, 0.0, 1.0)
        _check("--repeat-penalty", self.repeat_penalty, 0.1, 10.0)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about a session but its models.

    k: guesses in a round; None for as many as pay. n_ctx, draft_n_ctx: tokens; 0 for as many as the
    model was trained for; None for the default. n_threads: None for one per physical core.
    n_gpu_layers: -1 for all. requantize_draft: to four bits, where the CPU decodes it. seed: None
    for a new one. max_tokens: of one answer; None for as many as the context holds. think: show or
    hide what the model thinks before it answers, or off to ask it not to. force: load models that
    do not fit into memory. grammar: what an answer has to follow, as GBNF; "" for none.
    """

    k: int | None = None
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    seed: int | None = None
    n_ctx: int | None = None
    draft_n_ctx: int | None = None
    n_threads: int | None = None
    n_gpu_layers: int = -1
    draft_n_gpu_layers: int = -1
    requantize_draft: bool = True
    chat_template: Path | None = None
    stops: tuple[str, ...] = ()
    max_tokens: int | None = None
    think: str = "hide"
    force: bool = False
    grammar: str = ""

    def __post_init__(self) -> None:
        """Raise UsageError where a value makes no sense."""
        _check_chosen("--draft-tokens", self.k, 0, MAX_DRAFT_TOKENS)
        _check_chosen("--max-tokens", self.max_tokens, 0, None)
        if self.think not in THINK:
            raise UsageError(f"--think is {self.think}, show, hide or off is wanted")
        for stop in self.stops:
            check_text("--stop", stop)
            if not stop:
                raise UsageError("--stop is empty, a text is wanted")
        _check_chosen("--seed", self.seed, 0, 2**64 - 1)
        _check_chosen("--ctx", self.n_ctx, 0, 2**24)
        _check_chosen("--draft-ctx", self.draft_n_ctx, 0, 2**24)
        _check_chosen("--threads", self.n_threads, 1, 512)
        _check_whole("--gpu-layers", self.n_gpu_layers, -1, 2**16)
        _check_whole("--draft-gpu-layers", self.draft_n_gpu_layers, -1, 2**16)


def context_size(wanted: int | None, n_ctx_train: int) -> int:
    """Return the tokens of a context: those wanted, 0 for all that the model was trained for."""
    if wanted is None:
        return min(DEFAULT_N_CTX, n_ctx_train)
    return wanted or n_ctx_train


def check_text(name: str, text: object) -> None:
    """Raise UsageError for what is no text, or one that held bytes which are no UTF-8."""
    if not isinstance(text, str):
        raise UsageError(f"{name} is {shown(text)}, a text is wanted")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"{name} is not valid UTF-8") from None


def shown(value: object) -> str:
    """Return a value as an error names it, on one line that is not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check(option: str, value: object, least: float, most: float | None) -> None:
    """Raise UsageError for what is no number, or out of range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{option} is {shown(value)}, a number is wanted")
    if (
        (isinstance(value, float) and not isfinite(value))
        or value < least
        or (most is not None and value > most)
    ):
        wanted = f"{least} or more" if most is None else f"{least} to {most}"
        if value == inf:
            wanted = "a finite number"
        hint = f"--help of a command that has {option} says what it does and what is usual"
        raise UsageError(f"{option} is {value}, {wanted} is wanted", hint)


def _check_whole(option: str, value: object, least: int, most: int | None) -> None:
    """Raise UsageError for what is no whole number, or out of range."""
    if isinstance(value, float):
        raise UsageError(f"{option} is {value}, a whole number is wanted")
    _check(option, value, least, most)


def _check_chosen(option: str, value: object, least: int, most: int | None) -> None:
    """As _check_whole, but for None, which leaves the choice to us."""
    if value is not None:
        _check_whole(option, value, least, most)
