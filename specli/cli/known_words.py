"""What a shell completes where some words are known: values of options, settings, conversations."""

from collections.abc import Iterator

from specli.text import shortened

_THINK = {
    "show": "what the model thinks, too",
    "hide": "the answer alone",
    "off": "ask the model not to think",
}


def think_words(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the values of --think that begin so."""
    yield from ((name, said) for name, said in _THINK.items() if name.startswith(incomplete))


def draft_token_words(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the one value of --draft-tokens that is no number."""
    if "auto".startswith(incomplete):
        yield "auto", "as many as pay here"


def chat_ids(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the IDs of the conversations that were kept, the latest first, with how they began."""
    from specli.conversation_files import read, saved
    from specli.errors import SpecliError

    for path in saved():
        if not path.stem.startswith(incomplete.lower()):
            continue
        try:
            yield path.stem, shortened(read(path).title, 60)
        except SpecliError:  # this is no place to say it
            continue


def setting_names(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of config.toml that begin so; of its pairs those that stand there."""
    from specli.cli.options import option_kinds
    from specli.config import PAIR_KEYS, load_config
    from specli.errors import SpecliError

    try:
        targets = list(load_config().pairs)
    except SpecliError:
        targets = []
    pairs = [f"pairs.{target}.{key}" for target in targets for key in PAIR_KEYS]
    for name in (*sorted(option_kinds()), *pairs):
        if name.startswith(incomplete):
            yield name, ""
