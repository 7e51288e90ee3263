"""What Tab completes at the prompt of a conversation."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from specli.cli.model_names import draft_names, model_names

# What follows a command: "file", "model" for one that answers, "draft" for one that guesses, one of
# a few words; after any other, nothing that could be completed.
Argument: TypeAlias = str | tuple[str, ...]


class CommandCompleter(Completer):
    """Completes the names of commands, and what may follow each."""

    def __init__(self, commands: Mapping[str, Argument]) -> None:
        self._commands = commands

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        """Yield what the text before the cursor may become."""
        text = document.text_before_cursor
        command, space, argument = text.partition(" ")
        if not space:
            yield from _beginning(text, sorted(self._commands) if text.startswith("/") else ())
            return
        argument = argument.lstrip()
        kind = self._commands.get(command, "")
        if isinstance(kind, tuple):
            yield from _beginning(argument, kind)
        elif kind == "file":
            yield from _paths(argument, event, only_models=False)
        elif kind in ("model", "draft"):
            names = [name for name, _ in (model_names if kind == "model" else draft_names)("")]
            yield from _beginning(argument, names)
            yield from _paths(argument, event, only_models=True)


def _beginning(text: str, words: Iterable[str]) -> Iterable[Completion]:
    for word in words:
        if word.startswith(text):
            yield Completion(word, start_position=-len(text))


def _paths(text: str, event: CompleteEvent, only_models: bool) -> Iterable[Completion]:
    def is_wanted(name: str) -> bool:
        return not only_models or name.endswith(".gguf") or Path(name).is_dir()

    completer = PathCompleter(expanduser=True, file_filter=is_wanted)
    for found in completer.get_completions(Document(text), event):
        end = "/" if (Path(f"{text}{found.text}").expanduser()).is_dir() else ""
        yield Completion(f"{found.text}{end}", display=found.display)
