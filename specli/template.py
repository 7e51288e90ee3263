"""A model's chat template: a conversation becomes the text that the model reads."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.meta import find_undeclared_variables
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from specli.errors import ModelError
from specli.thinking import ThoughtSplitter, find_tags


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    role: system, user or assistant. thought: what an assistant thought before it answered; whether
    the model sees it again is up to its template.
    """

    role: str
    content: str
    thought: str = ""


# What templates call the choice whether to think, and its values for yes and no.
_SWITCHES: Mapping[str, tuple[object, object]] = {
    "enable_thinking": (True, False),
    "thinking": (True, False),
    "thinking_mode": ("enabled", "disabled"),
    "thinking_budget": (-1, 0),
}
# Values of reasoning_effort. That of a template that knows one for none may be this by default.
_NO_EFFORT, _LITTLE_EFFORT, _MUCH_EFFORT = ("none", "no_think", "minimal"), "low", "high"
_NO_THINK = "/no_think"  # a word of the system message, where the template looks for that


class ChatTemplate:
    """A model's Jinja template. It comes from an untrusted file and runs in jinja2's sandbox.

    It finds what transformers' apply_chat_template gives: that is what templates are written for.
    """

    def __init__(
        self,
        source: str,
        bos: str,
        eos: str,
        think: str = "hide",
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """bos, eos: how the vocabulary spells these tokens. Raises ModelError.

        think: "show" asks for thoughts and "off" for none, where the template can be asked; else
        the model does as it does by default.
        """
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = lambda form: now().strftime(form)
        self._fixed: dict[str, object] = {"bos_token": bos, "eos_token": eos}
        self._fixed |= {"tools": None, "documents": None}
        self._source = source
        self._think = think
        self.tags = find_tags(source)
        with _blamed_on_the_template("is broken"):
            tree = environment.parse(source)
            # Not asked for in vain: it takes as long as a compilation.
            self._names = find_undeclared_variables(tree) if think != "hide" else set()
            self._template = environment.from_string(tree)
        self._fixed |= self._asked()

    def render(self, messages: Sequence[Message]) -> str:
        """Return the conversation as the model wants it, up to where its answer begins."""
        messages = self._with_word(messages)
        with _blamed_on_the_template("refuses this conversation"):
            try:
                return self._render(messages, as_parts=self._wants_parts)
            except Exception as error:
                if self._refuses_system(messages):
                    raise _SystemRefused(str(error)) from None
                raise

    def splitter(self, prompt: str) -> ThoughtSplitter:
        """Return what tells thoughts from the answer to a prompt."""
        begun = self.tags is not None and prompt.rstrip().endswith(self.tags.start)
        return ThoughtSplitter(self.tags, begun=begun)

    @property
    def remark(self) -> str:
        """Say why the model may think though it was asked not to; "" where it was not, or obeys."""
        if self._think != "off" or self.tags is None or self._switches or self._has_word:
            return ""
        if self._effort in _NO_EFFORT:
            return ""
        if self._effort:
            return "this model always thinks: it is asked for little, and its thoughts are hidden"
        return "this model's template cannot ask it not to think: its thoughts are hidden"

    def _render(self, messages: Sequence[Message], *, as_parts: bool) -> str:
        turns = [_as_dict(message, as_parts=as_parts) for message in messages]
        return self._template.render(messages=turns, add_generation_prompt=True, **self._fixed)

    def _asked(self) -> dict[str, object]:
        """Return the variables that ask for thoughts or for none."""
        if self._think == "show":
            effort = _MUCH_EFFORT if self._effort in _NO_EFFORT else ""
            asked = {name: yes for name, (yes, _) in _SWITCHES.items() if name in self._names}
        elif self._think == "off":
            effort = self._effort
            asked = {name: no for name, (_, no) in _SWITCHES.items() if name in self._names}
        else:
            return {}
        return asked or ({"reasoning_effort": effort} if effort else {})

    @cached_property
    def _switches(self) -> set[str]:
        return self._names & _SWITCHES.keys()

    @cached_property
    def _effort(self) -> str:
        """Return the least effort that the template names; "" where it knows of none."""
        if "reasoning_effort" not in self._names:
            return ""
        named = (name for name in _NO_EFFORT if re.search(f"['\"]{name}['\"]", self._source))
        return next(named, _LITTLE_EFFORT)

    @cached_property
    def _has_word(self) -> bool:
        return not self._switches and _NO_THINK in self._source

    def _with_word(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Ask for no thoughts in the system message where the template looks for it there."""
        if self._think != "off" or not self._has_word:
            return messages
        if messages and messages[0].role == "system":
            return [Message("system", f"{messages[0].content} {_NO_THINK}"), *messages[1:]]
        return [Message("system", _NO_THINK), *messages]

    @cached_property
    def _wants_parts(self) -> bool:
        """Whether the template loses a content that is no list of parts."""
        return not self._keeps_text(as_parts=False) and self._keeps_text(as_parts=True)

    def _keeps_text(self, *, as_parts: bool) -> bool:
        try:
            return "needle" in self._render([Message("user", "needle")], as_parts=as_parts)
        except Exception:
            return False

    def _refuses_system(self, messages: Sequence[Message]) -> bool:
        """Say whether the conversation would be taken without its system message."""
        rest = [message for message in messages if message.role != "system"]
        if not rest or len(rest) == len(messages):
            return False
        try:
            self._render(rest, as_parts=self._wants_parts)
        except Exception:
            return False
        return True


class Generation(Extension):
    """Let {% generation %} ... {% endgeneration %} be a scope: it marks answers for training."""

    tags = {"generation"}  # noqa: RUF012  # as jinja2 declares it

    def parse(self, parser: Parser) -> nodes.Node:
        """Return what is inside."""
        next(parser.stream)
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True))


class _SystemRefused(Exception):
    """The template takes no system message."""


@contextmanager
def _blamed_on_the_template(what: str) -> Iterator[None]:
    """Turn whatever a template does wrong into a ModelError: it is somebody else's program."""
    try:
        yield
    except _SystemRefused as error:
        raise ModelError(
            f"the chat template refuses the system message: {error}",
            "say it in the first message, or give another template with --chat-template FILE",
        ) from None
    except Exception as error:
        said = str(error) or type(error).__name__
        raise ModelError(
            f"the chat template {what}: {said}",
            "give another one with --chat-template FILE, or use specli run --raw",
        ) from None


def _as_dict(message: Message, *, as_parts: bool) -> dict[str, object]:
    """Return a message as templates know it."""
    content = [{"type": "text", "text": message.content}] if as_parts else message.content
    turn: dict[str, object] = {"role": message.role, "content": content}
    if message.thought:
        turn |= {"reasoning_content": message.thought, "thinking": message.thought}
    return turn


def _raise_exception(message: str) -> Any:
    raise TemplateError(message)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
