"""A prompt as programs and scripts give it: a text, or messages as OpenAI's clients write them."""

from collections.abc import Mapping, Sequence

from specli.errors import UsageError
from specli.settings import check_text, shown
from specli.template import Message

_ROLES = ("system", "user", "assistant")
_EXAMPLE = 'each is {"role": "user", "content": "..."}'


def read_prompt(prompt: object) -> list[Message]:
    """Return the messages that a prompt is. Raises UsageError where one cannot be answered."""
    if isinstance(prompt, str):
        check_text("the prompt", prompt)
        if not prompt.strip():
            raise UsageError("the prompt is empty", "give a text")
        return [Message("user", prompt)]
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes | bytearray | memoryview):
        raise UsageError(
            f"the prompt is {shown(prompt)}, a text or a list of messages is wanted", _EXAMPLE
        )
    return read_messages(prompt)


def read_messages(turns: Sequence[object]) -> list[Message]:
    """Return the messages of a conversation, the last one to be answered. Raises UsageError.

    Only what an assistant said may be empty.
    """
    messages = [_message(turn, f"message {number}") for number, turn in enumerate(turns, 1)]
    if not messages or messages[-1].role == "system":
        raise UsageError("the list of messages holds none to answer", _EXAMPLE)
    return messages


def _message(turn: object, name: str) -> Message:
    if isinstance(turn, Mapping):
        if missing := [key for key in ("role", "content") if key not in turn]:
            raise UsageError(f"{name} has no {missing[0]}", _EXAMPLE)
        content = _content(turn["content"], name)
        turn = Message(turn["role"], content, turn.get("thought", ""))
    if not isinstance(turn, Message):
        raise UsageError(f"{name} is {shown(turn)}, a message is wanted", _EXAMPLE)
    if turn.role not in _ROLES:
        raise UsageError(
            f"the role of {name} is {shown(turn.role)}, system, user or assistant is wanted"
        )
    check_text(f"the content of {name}", turn.content)
    check_text(f"the thought of {name}", turn.thought)
    if turn.role != "assistant" and not turn.content.strip():
        raise UsageError(f"{name} has no text")
    return turn


def _content(content: object, name: str) -> str:
    """Return a content as one text. It may come in parts, all of them text."""
    parts = content if isinstance(content, list | tuple) else [{"type": "text", "text": content}]
    for part in parts:
        if not isinstance(part, Mapping) or part.get("type") != "text":
            raise UsageError(
                f"the content of {name} holds {shown(part)}, only text can be read",
                'a part is {"type": "text", "text": "..."}',
            )
        check_text(f"the content of {name}", part.get("text"))
    return "".join(str(part["text"]) for part in parts)
