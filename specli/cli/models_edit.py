"""specli models add and rm: the user's own names, and files that are no longer wanted."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from specli.cli.model_names import draft_names, model_names
from specli.cli.models_show import find_item
from specli.cli.streams import say
from specli.errors import ModelError, UsageError
from specli.text import human_size


def add(
    alias: Annotated[str, typer.Argument(help="The name to type, in lower case.")],
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The path of a GGUF file, or hf:org/repo/file.gguf."),
    ],
    vocabulary: Annotated[
        str, typer.Option(help="Models of one vocabulary can guess for each other.")
    ] = "own",
    draft: Annotated[
        str,
        typer.Option(
            help='A name, the path of a file, "ngram" or "none".', autocompletion=draft_names
        ),
    ] = "ngram",
    quant: Annotated[
        str | None,
        typer.Option(help="What the quantization is called.", show_default="as in the file's name"),
    ] = None,
    params_b: Annotated[
        float | None,
        typer.Option(help="Parameters, in 1e9.", show_default="as a file on this machine has"),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(
            help="Tokens that it was trained for.", show_default="as a file on this machine says"
        ),
    ] = None,
    license_: Annotated[str, typer.Option("--license", help="Its licence.")] = "unknown",
) -> None:
    """Give a file, on this machine or on the hub, a name of your own. It wins over one of specli's.

    \b
    Examples:
      specli models add mine ~/models/model-q4_k_m.gguf --draft ~/small-q8_0.gguf
      specli models add other hf:org/repo/model-q4_k_m.gguf --draft llama-1b
    """
    from specli.models.own_names import add_name
    from specli.models.registry import load_registry
    from specli.models.store import is_path, quant_of

    if file.startswith("hf:"):
        repo, name = _on_the_hub(file)
        known: tuple[float, int] = (0.0, 4096)
    elif is_path(file):
        path = _absolute(file)
        repo, name, known = "", str(path), _described(path)
    else:
        hint = "name a file by its path, or as hf:org/repo/file.gguf"
        raise UsageError(f"{file}: no such file", hint)
    if draft.lower() not in (*load_registry(), "ngram", "none") and is_path(draft):
        draft = str(_absolute(draft))
        _described(Path(draft))
    values: dict[str, str | float] = {
        "name": alias,
        "repo": repo,
        "vocabulary": vocabulary,
        "license": license_,
        "draft": draft,
        "method": "ngram" if draft in ("ngram", "none") else "draft",
        "params_b": known[0] if params_b is None else params_b,
        "context": known[1] if context is None else context,
    }
    quant = (quant_of(name) or "default") if quant is None else quant
    say("added", f"{alias} to {add_name(alias, values, quant, name)}")


def _on_the_hub(reference: str) -> tuple[str, str]:
    """Return repository and file of hf:org/repo/file.gguf."""
    repo, _, name = reference.removeprefix("hf:").rpartition("/")
    if repo.count("/") < 1:
        hint = "write it as hf:org/repo/file.gguf"
        raise UsageError(f"{reference}: names no file on the hub", hint)
    org, project, *folder = repo.split("/")
    return f"{org}/{project}", "/".join([*folder, name])


def _absolute(name: str) -> Path:
    """Return the path of a file, wherever one stands; a link stays one."""
    try:
        return Path(name).expanduser().absolute()
    except RuntimeError:  # ~nobody
        return Path(name).absolute()


def _described(path: Path) -> tuple[float, int]:
    """Return parameters, in 1e9, and trained context of a file. Raises ModelError."""
    from specli.models.header import read_header

    header = read_header(path)
    context = header.of_architecture("context_length")
    return round(header.n_params / 1e9, 4), context if isinstance(context, int) else 0


def rm(
    model: Annotated[str, typer.Argument(help="An alias[:quant].", autocompletion=model_names)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a model's file from the Hugging Face cache. Files elsewhere are never touched.

    Of a name of your own that names a file elsewhere, or none that is here, the name is removed.

    \b
    Example:
      specli models rm llama-8b:q4_k_m
    """
    from specli.models.hub import Remote
    from specli.models.local import find_cached, remove_cached
    from specli.models.own_names import is_own, remove_name
    from specli.models.registry import load_registry

    item = find_item(model, load_registry())
    alias, is_local = item.entry.alias, item.entry.is_local
    cached = Remote(item.entry.repo, item.file.file, item.entry.revision)
    path = None if is_local else find_cached(cached)
    if path is None and is_own(alias):
        if _agreed(model, f"Remove the name {alias} ({item.file.file} stays)?", yes=yes):
            stays = f"; {item.path} stays" if item.path else ""
            say("removed", f"{alias} from {remove_name(alias)}{stays}")
        else:
            say("kept", alias)
        return
    path = path or item.path
    if path is None:
        raise ModelError(f"{model}: is not on this machine")
    if not _agreed(model, f"Remove {path} ({human_size(item.size_bytes)})?", yes=yes):
        say("kept", str(path))
        return
    say("removed", f"{path}, {human_size(remove_cached(path))} are free now")


def _agreed(model: str, question: str, *, yes: bool) -> bool:
    """Ask, where nothing was said beforehand. Raises UsageError where nobody is there to ask."""
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        command = f"specli models rm {model} --yes"
        raise UsageError("nobody is there to ask", f"this asks no question: {command}")
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:
        answer = ""
    return answer.strip().lower() in ("y", "yes")
