"""specli models list, info and path: what there is, and where it lies."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specli.cgroups import memory_total_bytes
from specli.cli.model_names import model_names
from specli.cli.streams import write, write_lines
from specli.errors import ModelError
from specli.text import human_size

if TYPE_CHECKING:
    from specli.models.here import Here
    from specli.models.registry import Registry

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def list_models(
    here: Annotated[bool, typer.Option("--here", help="Only what is on this machine.")] = False,
    as_json: Json = False,
) -> None:
    """List the models that have a name: what is on this machine, what fits it, what guesses for it.

    \b
    Example:
      specli models list --here
    """
    from specli.models.here import look_around
    from specli.models.registry import load_registry

    registry = load_registry()
    found = [item for item in look_around(registry, memory_total_bytes()) if item.path or not here]
    if as_json:
        write(json.dumps([_as_dict(item) for item in found], indent=2) + "\n")
        return
    rows: list[tuple[str, ...]] = [("MODEL", "QUANT", "SIZE", "HERE", "FITS", "DRAFT")]
    rows += [_row(item) for item in found]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        write_lines(["  ".join(cells).rstrip()])
    if any(row[5].endswith("*") for row in rows):
        write_lines(["* has an MTP or EAGLE-3 head too, which specli cannot use yet"])


def _row(item: "Here") -> tuple[str, ...]:
    entry = item.entry
    draft = Path(entry.draft).name if Path(entry.draft).is_absolute() else entry.draft
    about = "" if item.path or item.file.size_bytes else "~"
    return (
        entry.alias,
        item.file.quant,
        f"{about}{human_size(item.size_bytes)}" if item.size_bytes else "?",
        "yes" if item.path else "gone" if entry.is_local else "-",
        item.fits or "?",
        draft if entry.method in ("draft", "ngram") else f"{draft} *",
    )


def info(
    model: Annotated[
        str,
        typer.Argument(
            help="An alias[:quant], or the path of a GGUF file.", autocompletion=model_names
        ),
    ],
    as_json: Json = False,
) -> None:
    """Say what is known of a model: from the registry, and from its file where that is here.

    \b
    Example:
      specli models info demo
    """
    from specli.models.registry import load_registry

    facts = model_facts(model, load_registry())
    if as_json:
        write(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
        return
    width = max(map(len, facts))
    rows = [f"{name:<{width}}  {_shown(name, value)}" for name, value in facts.items()]
    write_lines(rows, hang=width + 2)


def path(
    model: Annotated[str, typer.Argument(help="An alias[:quant].", autocompletion=model_names)],
) -> None:
    """Print the path of a model's file, for scripts; fetch nothing.

    \b
    Example:
      llama-cli -m "$(specli models path demo)"
    """
    from specli.models.registry import load_registry
    from specli.models.store import look_up

    registry = load_registry()
    item = find_item(model, registry)
    if item.path is None and item.entry.is_local:
        look_up(model, registry)  # says so
    if item.path is None:
        raise ModelError(f"{model}: is not on this machine", f"fetch it: specli pull {model}")
    write(f"{item.path}\n")


def find_item(model: str, registry: "Registry") -> "Here":
    """Look up an alias[:quant]; without a quant, one that is here comes before the default."""
    from specli.models.here import describe, find_here
    from specli.models.registry import File, find

    alias, _, quant = model.partition(":")
    entry = find(registry, alias)
    files = [file for file in entry.files if quant.lower() in ("", file.quant)]
    if files:
        found = next((file for file in files if find_here(entry, file)), files[0])
        path = find_here(entry, found)
    else:  # one that only the repository names: what pull has fetched of it
        from specli.models.store import locate

        path = locate(model, registry, offline=True).path
        found = File(quant.lower(), path.name)
    return describe(entry, found, path, registry, memory_total_bytes())


def model_facts(model: str, registry: "Registry") -> dict[str, object]:
    """Return what is known of a model, by name."""
    from specli.models.compatibility import rollback
    from specli.models.header import file_bytes, read_header
    from specli.models.store import Located, look_up
    from specli.models.vocabulary import vocabulary_of

    facts: dict[str, object] = {}
    alias = model.partition(":")[0].lower()
    if alias in registry:
        item = find_item(model, registry)
        facts, file = _as_dict(item), item.path
        if file is None:
            return facts
    else:
        found = look_up(model, registry, offline=True)
        assert isinstance(found, Located), "offline, what is missing is an error"
        facts["path"], file = str(found.path), found.path
    header = read_header(file)
    facts["size_bytes"] = file_bytes(file)
    facts["architecture"] = header.architecture
    facts["parameters"] = header.n_params
    facts["layers"] = header.of_architecture("block_count", None)
    facts["trained_context"] = header.of_architecture("context_length", None)
    facts["tokens"] = vocabulary_of(header).n_tokens
    facts["chat_template"] = "tokenizer.chat_template" in header.values
    facts["rollback"] = rollback(header) or "none: decoded plainly"
    return facts


def _as_dict(item: "Here") -> dict[str, object]:
    entry = item.entry
    return {
        "alias": entry.alias,
        "name": entry.name,
        "repo": entry.repo or None,
        "file": item.file.file,
        "quant": item.file.quant,
        "quants": [file.quant for file in entry.files],
        "size_bytes": item.size_bytes or None,
        "path": str(item.path) if item.path else None,
        "fits": item.fits or None,
        "draft": entry.draft,
        "method": entry.method,
        "vocabulary": entry.vocabulary,
        "license": entry.license,
        "context": entry.context,
        "gain": entry.gain or None,
        "gain_source": entry.gain_source or None,
        "checked": entry.checked or None,
    }


def _shown(name: str, value: object) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return human_size(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
