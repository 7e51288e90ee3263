"""The options of specli bench, checked before anything is loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from platformdirs import user_data_path

from specli.bench.prompts import Prompt, load_prompts
from specli.bench.schedule import MAX_TOKENS, N_PROMPTS, N_REPEATS, QUICK_REPEATS, SWEPT
from specli.bench.trial import SEED
from specli.cli.choices import with_guesses
from specli.cli.options import ModelOptions
from specli.config import pair_key
from specli.errors import UsageError
from specli.files import check_place, unwritable
from specli.models.store import Located, is_path
from specli.settings import MAX_DRAFT_TOKENS, SamplingSettings, Settings
from specli.text import shortened


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options that only specli bench has, as typer fills them in."""

    quick: bool
    drafts: str | None
    sweep_k: bool
    ks: str | None
    temps: str | None
    categories: str | None
    prompts: Path | None
    per_category: int | None
    repeat: int | None
    duration: float | None
    out: Path | None
    save: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for. drafts: as run would be told; None for what run would take.

    ks: guesses in a round, which auto is compared with. least_tokens: of an answer, as somebody
    asked for just these. repeats: None for as many as time allows.
    """

    settings: Settings
    drafts: tuple[str | None, ...]
    ks: tuple[int, ...]
    prompts: tuple[Prompt, ...]
    n_prompts: int
    temperatures: tuple[float, ...]
    max_tokens: int
    least_tokens: int
    repeats: int | None
    out: Path


def checked(options: ModelOptions, wanted: Wanted) -> Plan:
    """Return what was asked for. Raises UsageError where it makes no sense."""
    settings = options.settings()
    settings = replace(settings, seed=SEED if settings.seed is None else settings.seed)
    if settings.k == 0 or settings.max_tokens == 0:
        what = "--draft-tokens" if settings.k == 0 else "--max-tokens"
        raise UsageError(f"{what} is 0, which leaves nothing to compare")
    if wanted.duration is not None and (wanted.quick or not 0 < wanted.duration < 1e5):
        if wanted.quick:
            raise UsageError("--quick and --duration exclude each other")
        raise UsageError(f"--duration is {wanted.duration:g}, minutes above 0 are wanted")
    all_of_them = 10**6 if wanted.prompts else N_PROMPTS
    usual = QUICK_REPEATS if wanted.quick else N_REPEATS
    return Plan(
        settings=settings,
        drafts=_drafts(options, wanted.drafts),
        ks=_ks(wanted),
        prompts=_prompts(wanted),
        n_prompts=wanted.per_category or all_of_them,
        temperatures=_temperatures(wanted.temps, options.temp),
        max_tokens=settings.max_tokens or MAX_TOKENS,
        least_tokens=(settings.max_tokens or 0) if options.is_given("max_tokens") else 0,
        repeats=None if wanted.duration else wanted.repeat or usual,
        out=_out(wanted.out),
    )


def labelled(
    references: Sequence[str | None], guessers: Sequence[Located | str]
) -> tuple[dict[str, Located | str], dict[str, str]]:
    """Return what guesses, and how run is told so, by the label that it has in the records."""
    found: dict[str, Located | str] = {}
    told: dict[str, str] = {}
    kinds = {guesser for guesser in guessers if isinstance(guesser, str)}
    for reference, guesser in zip(references, guessers, strict=True):
        if guesser in found.values() or guesser == "none":
            continue
        label = name = guesser.name if isinstance(guesser, Located) else guesser
        if isinstance(guesser, Located) and (name in found or name in kinds):
            label = str(guesser.path)
        found[label] = guesser
        told[label] = absolute(reference or _reference(guesser))
    if not found:
        raise UsageError(
            "without a draft there is nothing to compare", "give --draft, or --drafts A,B,ngram"
        )
    return found, told


def _reference(guesser: Located | str) -> str:
    """Return what names a guesser: of a file that no registry knows, its path."""
    if isinstance(guesser, str):
        return guesser
    return guesser.name if guesser.entry else str(guesser.path)


def absolute(reference: str) -> str:
    """Return a reference that means the same in every folder."""
    return pair_key(reference, is_path(reference))


def fitting(
    prompts: Sequence[Prompt], lengths: Mapping[str, int], max_tokens: int, n_ctx: int
) -> tuple[Prompt, ...]:
    """Return the prompts that fit into the context with their answers. Raises UsageError if none.

    lengths: tokens by id.
    """
    found = tuple(p for p in prompts if lengths[p.id] + max_tokens <= n_ctx)
    if not found:
        least = min(lengths.values()) + max_tokens
        raise UsageError(
            f"no prompt fits into a context of {n_ctx} tokens with {max_tokens} more",
            f"use --ctx {least} or more",
        )
    return found


def _drafts(options: ModelOptions, drafts: str | None) -> tuple[str | None, ...]:
    if drafts is None:
        return (options.draft,)
    if options.draft is not None and options.origins["draft"].kind == "flag":
        raise UsageError("--draft and --drafts exclude each other")
    of_run = with_guesses(options).draft
    found = tuple(of_run if name == "auto" else name for name in names(drafts))
    if not found:
        raise UsageError("--drafts is empty", "name models, ngram and auto, with commas between")
    return found


def _ks(wanted: Wanted) -> tuple[int, ...]:
    if wanted.ks is None:
        return SWEPT if wanted.sweep_k else ()
    if wanted.sweep_k:
        raise UsageError("--ks and --sweep-k exclude each other")
    numbers = {str(k): k for k in range(1, MAX_DRAFT_TOKENS + 1)}
    found = names(wanted.ks)
    if not found or not all(text in numbers for text in found):
        raise UsageError(
            f"--ks is {_told(wanted.ks)}, numbers from 1 to {MAX_DRAFT_TOKENS} with commas"
            " between are wanted",
            "for example --ks 3,6",
        )
    return tuple(dict.fromkeys(numbers[text] for text in found))


def _prompts(wanted: Wanted) -> tuple[Prompt, ...]:
    prompts = load_prompts(wanted.prompts)
    known = list(dict.fromkeys(prompt.category for prompt in prompts))
    chosen = known if wanted.categories is None else names(wanted.categories)
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise UsageError(
            f"--categories: no prompt is of {', '.join(unknown) or 'none'}",
            f"there are {', '.join(known)}",
        )
    return tuple(prompt for prompt in prompts if prompt.category in chosen)


def _temperatures(temps: str | None, temp: float) -> tuple[float, ...]:
    try:
        found = [temp] if temps is None else [float(text) for text in names(temps)]
    except ValueError:
        found = []
    if not found:
        raise UsageError(
            f"--temps is {_told(temps or '')}, numbers with commas between are wanted",
            "for example --temps 0,1",
        )
    for temperature in found:
        SamplingSettings(temperature)
    return tuple(dict.fromkeys(found))


def _out(path: Path | None) -> Path:
    if path is None:
        name = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
        path = user_data_path("specli") / "bench" / f"{name}.jsonl"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path, error) from None
    check_place(path)
    if path.exists():
        raise UsageError(f"{path}: exists already", "name another file with --out")
    return path


def names(text: str) -> list[str]:
    """Return what stands between the commas of an option."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _told(text: str) -> str:
    """Return the text of an option as an error names it."""
    return shortened(text, 60) or "empty"
