"""A target and what may guess for it, by the names that somebody gave them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from specli.errors import ModelError
from specli.models.download import Listening, Progress, deaf
from specli.models.registry import Entry, load_registry
from specli.models.store import Located, Missing, fetch_missing, look_up


@dataclass(frozen=True, slots=True)
class Named:
    """A model's reference. said_in: where it stands, if that is not before everyone's eyes."""

    reference: str
    said_in: str = ""


def find_models(
    target: Named,
    drafts: Sequence[Named | None],
    offline: bool,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    listening: Listening = deaf,
    on_note: Callable[[str], None] = lambda note: None,
) -> tuple[Located, list[Located | str]]:
    """Locate a target and what may guess for it, and fetch what is not here.

    drafts: models, "ngram" or "none"; None for the registered draft, else n-gram. on_note: told
    what else is worth knowing. on_progress, listening: as for download.fetch. Raises ModelError.
    """
    registry = load_registry()

    def look(named: Named) -> Located | Missing:
        with _said_in(named):
            return look_up(named.reference, registry, offline)

    first = look(target)
    wanted = [draft or registered(first.entry, on_note) for draft in drafts]
    named = {one.reference: one for one in wanted if one.reference not in ("ngram", "none")}
    found = [first, *(look(one) for one in named.values())]
    for one, model in zip((target, *named.values()), found, strict=True):
        if one.said_in and isinstance(model, Located) and not model.path.exists():
            raise ModelError(f"{one.said_in}: {model.path}: no such file")
    located, *others = fetch_missing(found, on_progress, listening)
    by_name = dict(zip(named, others, strict=True))
    return located, [by_name.get(one.reference, one.reference) for one in wanted]


@contextmanager
def _said_in(named: Named) -> Iterator[None]:
    try:
        yield
    except ModelError as error:
        if not named.said_in:
            raise
        raise ModelError(f"{named.said_in}: {error.message}", error.hint) from None


def registered(entry: Entry | None, on_note: Callable[[str], None]) -> Named:
    """Return what guesses for a target unless the user says otherwise."""
    if entry is None:
        return Named("ngram")
    if entry.method in ("mtp", "eagle3"):
        said = f"its {entry.method.upper()} head cannot be used yet: ngram drafts"
        on_note(f"{entry.alias}: {said}")
        return Named("ngram")
    return Named(entry.draft)
