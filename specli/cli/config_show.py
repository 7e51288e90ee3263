"""What specli config shows: each setting as it holds now, with its source."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specli.cli.choices import with_choices
from specli.cli.config_change import place_of
from specli.cli.options import ModelOptions, option_kinds
from specli.cli.sources import Kind, Origin, keys_of, settled
from specli.cli.table import table
from specli.config import Config, config_file, load_config, shown
from specli.errors import UsageError
from specli.models.pairing import registered
from specli.models.registry import load_registry
from specli.models.store import is_path
from specli.settings import DEFAULT_TARGET


@dataclass(frozen=True, slots=True)
class Setting:
    """One option as it holds now. value: None where the default depends on something."""

    key: str
    value: Any
    source: Kind
    place: str  # the variable, or the key with its file; "" for a default


def settings_of(root: Any) -> list[Setting]:
    """Return all settings. root: the command specli, as click knows it. Raises UsageError."""
    options = _options(root)
    found = []
    for name in option_kinds():
        origin = options.origins.get(name)
        value = getattr(options, name)
        value = str(value) if isinstance(value, Path) else value
        source: Kind = origin.kind if origin else "default"
        found.append(Setting(name, value, source, origin.name if origin else ""))
    return found


def value_of(root: Any, key: str) -> Any:
    """Return one setting, None where nothing is set. Raises UsageError where none is called so."""
    match place_of(key):
        case (name,):
            return next(setting.value for setting in settings_of(root) if setting.key == name)
        case (_, target, name):
            choice = _config().pairs.get(target)
            return getattr(choice, name) if choice else None
    raise UsageError(f"{key} is a table, one of its keys is wanted", f"for example {key}.draft")


def settings_json(root: Any) -> str:
    """Return them, and what is chosen for targets, as JSON."""
    settings = {s.key: {"value": s.value, "source": s.source} for s in settings_of(root)}
    pairs = {
        name: {"draft": choice.draft, "draft_tokens": choice.draft_tokens}
        for name, choice in _config().pairs.items()
    }
    said = {"file": str(config_file()), "settings": settings, "pairs": pairs}
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"


def settings_text(root: Any) -> list[str]:
    """Return the lines of the same as tables."""
    file = config_file()
    rows = [("setting", "value", "source")]
    for setting in settings_of(root):
        place = setting.place.removeprefix(f"{file}: ")
        named = place if setting.source in ("environment", "pair") else ""
        rows.append((setting.key, worded(setting.value), f"{setting.source} {named}".rstrip()))
    lines = [f"{file}{'' if file.exists() else ' (not there yet)'}", "", *table(rows, left=3)]
    if pairs := _config().pairs:
        head = ("pairs", "draft", "draft_tokens")
        body = [(n, worded(c.draft), worded(c.draft_tokens)) for n, c in pairs.items()]
        lines += ["", *table([head, *body], left=3)]
    return lines


def worded(value: Any) -> str:
    """Return a value for people and for scripts; a dash where the default depends on something."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else shown(getattr(value, "value", value))


def _options(root: Any) -> ModelOptions:
    """Return what a command would find that is given no flags."""
    kinds = option_kinds()
    command = root.commands["run"]
    with command.make_context("run", []) as context:
        values = {name: context.params[name] for name in kinds}
        options = settled(ModelOptions(**values), kinds, context)
    options = with_choices(options)
    tokens, target = options.draft_tokens or "auto", options.target or DEFAULT_TARGET
    options = replace(options, target=target, draft_tokens=tokens)
    return options if options.draft else _with_registered(options, target)


def _with_registered(options: ModelOptions, target: str) -> ModelOptions:
    """Fill in the draft that a command would take for this target."""
    if is_path(target):
        return replace(options, draft="ngram")
    entry = load_registry().get(target.partition(":")[0].lower())
    if entry is None:
        return options
    draft = registered(entry, lambda note: None).reference
    origins = {"draft": Origin("pair", "models.toml")} if draft != "ngram" else {}
    return replace(options, draft=draft, origins={**options.origins, **origins})


def _config() -> Config:
    return load_config(keys_of(option_kinds()))
