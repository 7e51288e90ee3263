"""specli pull: models onto this machine."""

import json
from typing import Annotated, TypeAlias

import typer

from specli.cli.model_names import model_names
from specli.errors import ModelError

Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Fetch nothing, fail where something is missing.")
]


def pull(
    references: Annotated[
        list[str],
        typer.Argument(
            metavar="REFERENCE",
            autocompletion=model_names,
            help="An alias[:quant], hf:org/repo/file.gguf, or hf:org/repo:quant.",
        ),
    ],
    no_draft: Annotated[
        bool, typer.Option("--no-draft", help="Leave out the drafts that are registered for them.")
    ] = False,
    offline: Offline = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON line for each model instead of its path.")
    ] = False,
) -> None:
    """Fetch models into the Hugging Face cache, each with its draft, and print where they lie.

    Models that are on this machine already are not fetched again, wherever they lie.
    HF_ENDPOINT, HF_TOKEN, HF_HOME and HF_HUB_OFFLINE mean what they mean to other programs.

    \b
    Examples:
      specli pull llama-70b
      specli pull hf:org/repo:q4_k_m --json
    """
    from specli.cli.downloads import Downloads
    from specli.cli.interrupt import Interrupt
    from specli.cli.streams import write
    from specli.models.registry import load_registry
    from specli.models.store import Missing, fetch_missing, look_up

    registry = load_registry()
    with Downloads() as downloads:
        found = [look_up(reference, registry, offline) for reference in dict.fromkeys(references)]
        names = {model.name for model in found}
        for entry in [model.entry for model in found if model.entry and not no_draft]:
            if entry.draft not in ("ngram", "none", *names):
                names.add(entry.draft)
                found.append(look_up(entry.draft, registry, offline))
        located = fetch_missing(found, downloads.show, Interrupt().listening)
    for before, model in zip(found, located, strict=True):
        if not model.path.is_file():
            raise ModelError(f"{model.path}: no such file", "name a model that can be fetched")
        shown = {
            "name": model.name,
            "path": str(model.path),
            "fetched": isinstance(before, Missing),
        }
        write(f"{json.dumps(shown, ensure_ascii=False) if as_json else model.path}\n")
