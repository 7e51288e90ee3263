"""What guesses for a target, as the user has chosen it for good."""

from dataclasses import replace

from specli.cli.options import ModelOptions
from specli.cli.sources import Origin
from specli.config import config_file, load_config, pair_key, pair_place
from specli.models.store import is_path
from specli.settings import DEFAULT_TARGET


def with_choices(options: ModelOptions) -> ModelOptions:
    """Fill in what the user has chosen for this target for good, where nothing else says otherwise.

    How much to guess is chosen for the draft beside it, and holds for no other. Whoever says how
    much does not want what was chosen to be nothing.
    """
    reference = options.target or DEFAULT_TARGET
    if _is_off_for_good(options) and options.is_given("draft_tokens"):
        options = options.changed(draft=None)
    name = pair_key(reference, is_path(reference))
    choice = load_config().pairs.get(name)
    if choice is None or (choice.draft == "none" and options.is_given("draft_tokens")):
        return options
    origins, place = {**options.origins}, f"{config_file()}: {pair_place(name)}"
    draft, tokens = options.draft, options.draft_tokens
    if draft is None and choice.draft is not None:
        draft, origins["draft"] = choice.draft, Origin("pair", f"{place}.draft")
    if tokens is None and draft == choice.draft and choice.draft_tokens is not None:
        tokens = choice.draft_tokens
        origins["draft_tokens"] = Origin("pair", f"{place}.draft_tokens")
    return replace(options, draft=draft, draft_tokens=tokens, origins=origins)


def with_guesses(options: ModelOptions) -> ModelOptions:
    """Fill in what the user has chosen for this target, unless that was not to speculate.

    For commands that are about speculation, and can find that choice to be wrong.
    """
    if _is_off_for_good(options):
        options = options.changed(draft=None)
    chosen = with_choices(options)
    if options.draft is None and chosen.draft == "none":
        chosen = options
    is_none = chosen.draft_tokens == "0" and not chosen.is_given("draft_tokens")
    return chosen.changed(draft_tokens=None) if is_none else chosen


def _is_off_for_good(options: ModelOptions) -> bool:
    return options.draft == "none" and not options.is_given("draft")
