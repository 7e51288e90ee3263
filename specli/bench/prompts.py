"""The prompts of a benchmark: our own, in the package, or a user's file."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from specli.errors import UsageError
from specli.files import read_text
from specli.settings import check_text

_WANTED = '{"id": ..., "category": ..., "text": ...}'


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a model. id: unique in its file. category: what kind of text it asks for."""

    id: str
    category: str
    text: str


def load_prompts(path: Path | None = None) -> list[Prompt]:
    """Return the prompts of a JSONL file, or the package's own. Raises UsageError."""
    if path is None:
        text = (files("specli.bench") / "prompts.jsonl").read_text(encoding="utf-8")
        return parse_prompts(text, "prompts.jsonl")
    return parse_prompts(read_text(path, pipes=True), str(path))


def parse_prompts(text: str, name: str) -> list[Prompt]:
    """Return the prompts of a text, one JSON object a line; name: of its file, for errors."""
    prompts: dict[str, Prompt] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            prompt = _prompt(line, f"{name}, line {number}")
            if prompt.id in prompts:
                raise UsageError(f"{name}, line {number}: the id {prompt.id} is taken already")
            prompts[prompt.id] = prompt
    if not prompts:
        raise UsageError(f"{name}: holds no prompts", f"one JSON object a line: {_WANTED}")
    return list(prompts.values())


def by_category(prompts: list[Prompt], most: int) -> Iterator[tuple[str, list[Prompt]]]:
    """Yield each category with its first prompts, as many as `most`, in the file's order."""
    for category in dict.fromkeys(prompt.category for prompt in prompts):
        yield category, [prompt for prompt in prompts if prompt.category == category][:most]


def _prompt(line: str, where: str) -> Prompt:
    try:
        found: Any = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{where}: is not JSON: {error}") from None
    except RecursionError:
        raise UsageError(f"{where}: is no JSON object", f"wanted: {_WANTED}") from None
    if not isinstance(found, dict):
        raise UsageError(f"{where}: is no JSON object", f"wanted: {_WANTED}")
    for key in ("id", "category", "text"):
        if not isinstance(found.get(key), str) or not found[key].strip():
            raise UsageError(f"{where}: {key} is no text", f"wanted: {_WANTED}")
        # Names stand in plots, which hold no control character.
        if key != "text" and not found[key].isprintable():
            raise UsageError(f"{where}: {key} has a character that cannot be shown")
        check_text(f"{where}: {key}", found[key])
    return Prompt(found["id"], found["category"], found["text"])
