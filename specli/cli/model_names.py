"""What is completed where a model is wanted, in a shell and in a conversation."""

from collections.abc import Iterator


def model_names(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the registered aliases that begin so, with what they are."""
    from specli.errors import SpecliError
    from specli.models.registry import load_registry

    try:
        registry = load_registry()
    except SpecliError:  # this is no place to say it
        return
    for alias in sorted(registry):
        if alias.startswith(incomplete):
            yield alias, registry[alias].name


def draft_names(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield what can guess: n-grams, nothing, and the aliases."""
    for name, said in (("ngram", "the text itself"), ("none", "plain decoding")):
        if name.startswith(incomplete):
            yield name, said
    yield from model_names(incomplete)
