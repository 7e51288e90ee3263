"""specli models add and rm: the user's own names, and files that are no longer wanted."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from specli.cli.models_show import find_item
from specli.cli.streams import say
from specli.errors import ModelError, UsageError
from specli.text import human_size


def add(
    alias: Annotated[str, typer.Argument(help="The name to type, in lower case.")],
    file: Annotated[str, typer.Argument(help="hf:org/repo/file.gguf")],
    vocabulary: Annotated[
        str, typer.Option(help="Models of one vocabulary can guess for each other.")
    ] = "own",
    draft: Annotated[str, typer.Option(help='An alias, "ngram" or "none".')] = "ngram",
    quant: Annotated[str, typer.Option(help="What the quantization is called.")] = "default",
    params_b: Annotated[float, typer.Option(help="Parameters, in 1e9.")] = 0.0,
    context: Annotated[int, typer.Option(help="Tokens that it was trained for.")] = 4096,
    license_: Annotated[str, typer.Option("--license", help="Its licence.")] = "unknown",
) -> None:
    """Give a file on the hub a name of your own. It wins over a name of specli's.

    \b
    Example:
      specli models add mine hf:org/repo/model-q4_k_m.gguf --draft llama-1b
    """
    from specli.models.registry import user_file

    repo, _, name = file.removeprefix("hf:").rpartition("/")
    if not file.startswith("hf:") or repo.count("/") < 1:
        raise UsageError(f"{file}: names no file on the hub", "write it as hf:org/repo/file.gguf")
    org, project, *folder = repo.split("/")
    strings = {
        "name": alias,
        "repo": f"{org}/{project}",
        "vocabulary": vocabulary,
        "license": license_,
        "draft": draft,
        "method": "ngram" if draft in ("ngram", "none") else "draft",
    }
    lines = [f"[models.{_quoted(alias)}]"]
    lines += [f"{key} = {_quoted(value)}" for key, value in strings.items()]
    lines += [f"params_b = {params_b}", f"context = {context}"]
    lines += [f"[models.{_quoted(alias)}.files]"]
    lines += [f"{_quoted(quant)} = {{ file = {_quoted('/'.join([*folder, name]))} }}"]
    path = user_file()
    _append(path, alias, "\n".join(lines) + "\n")
    say("added", f"{alias} to {path}")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # TOML has the same escapes, but no surrogates


def _append(path: Path, alias: str, text: str) -> None:
    """Append to the user's registry, if what comes out is a registry; else leave it as it was."""
    from specli.models.registry import load_registry, read_registry

    if path.exists() and alias in read_registry(path):
        raise UsageError(f"{alias} exists already in {path}", "edit that file, or use another name")
    path = path.resolve()  # a link stays one
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(f"{before}\n{text}" if before else text, encoding="utf-8")
        try:
            load_registry(partial)
        except ModelError as error:
            said = re.sub(rf"^{re.escape(str(partial))}:\d+: ", "", error.message)
            raise UsageError(f"that is no entry: {said}", error.hint) from None
        partial.replace(path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)


def rm(
    model: Annotated[str, typer.Argument(help="An alias[:quant].")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a model's file from the Hugging Face cache. Files elsewhere are never touched.

    \b
    Example:
      specli models rm llama-8b:q4_k_m
    """
    from specli.models.hub import Remote
    from specli.models.local import find_cached, remove_cached
    from specli.models.registry import load_registry

    item = find_item(model, load_registry())
    path = find_cached(Remote(item.entry.repo, item.file.file, item.entry.revision)) or item.path
    if path is None:
        raise ModelError(f"{model}: is not on this machine")
    if not yes:
        if sys.stdin is None or not sys.stdin.isatty():
            raise UsageError("nobody is there to ask", f"specli models rm {model} --yes")
        try:
            answer = input(f"Remove {path} ({human_size(item.size_bytes)})? [y/N] ")
        except EOFError:
            answer = ""
        if answer.strip().lower() not in ("y", "yes"):
            say("kept", str(path))
            return
    say("removed", f"{path}, {human_size(remove_cached(path))} are free now")
