"""What was said in a conversation: as it is kept, line by line, and as it is given away."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from specli.chat import Message
from specli.errors import UsageError

SCHEMA = 1  # of the lines and of the exported JSON; a newer one is refused
MARK = "specli conversation"  # stands at the beginning of what is exported
_BROKEN = ("", "interrupted")


@dataclass(frozen=True, slots=True)
class Turn:
    """A message and its answer.

    thought: what the model thought before it answered. reason: why the answer ended, "" where
    nobody saw its end.
    """

    user: str
    answer: str = ""
    thought: str = ""
    reason: str = ""

    @property
    def answered(self) -> bool:
        """Whether there is an answer to go on from, and be it a part of one."""
        return bool(self.answer) or self.reason not in _BROKEN

    @property
    def interrupted(self) -> bool:
        """Whether the answer is a part of one."""
        return self.reason in _BROKEN


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation.

    created, changed: ISO 8601, UTC. target, draft: as the user named them. settings: for people to
    read, but n_ctx. n_dropped: so many of the oldest turns are no longer given to the model.
    n_damaged: lines that could not be read.
    """

    id: str
    created: str
    target: str = ""
    draft: str = ""
    system: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    turns: tuple[Turn, ...] = ()
    n_dropped: int = 0
    n_damaged: int = 0
    changed: str = ""

    @property
    def title(self) -> str:
        """The beginning of the first message, in one line."""
        return " ".join(self.turns[0].user.split())[:200] if self.turns else ""


def now() -> str:
    """Return the time as it is written down."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def messages(system: str, turns: Sequence[Turn]) -> list[Message]:
    """Return what the model is given; a message that was never answered is left out.

    The last one is what is to be answered.
    """
    told = [Message("system", system)] if system else []
    for turn in turns[:-1]:
        if turn.answered:
            answer = Message("assistant", turn.answer, turn.thought)
            told += [Message("user", turn.user), answer]
    return [*told, Message("user", turns[-1].user)] if turns else told


def parse(data: bytes, name: str) -> Conversation:
    """Return the conversation that a file's lines tell; lines that are torn tell nothing.

    Raises UsageError where the file is something else, or of a newer specli.
    """
    events: list[dict[str, Any]] = []
    n_damaged = 0
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            n_damaged += 1
            continue
        if isinstance(event, dict):
            events.append(event)
        else:
            n_damaged += 1
    if not events or events[0].get("type") != "conversation":
        raise UsageError(f"{name}: is no conversation of specli")
    head = events[0]
    _check_schema(head, name)
    whole = Conversation(
        name,  # and not what the head says: the file may be a copy, or somebody's trick
        str(head.get("created", "")),
        str(head.get("target") or ""),
        str(head.get("draft") or ""),
        str(head.get("system") or ""),
        head["settings"] if isinstance(head.get("settings"), dict) else {},
        n_damaged=n_damaged,
        changed=str(head.get("created", "")),
    )
    turns: list[Turn] = []
    for event in events[1:]:
        whole = _after(whole, turns, event)
    return replace(whole, turns=tuple(turns))


def _after(whole: Conversation, turns: list[Turn], event: Mapping[str, Any]) -> Conversation:
    """Return the conversation with one more line of the file; its turns are changed in place."""
    if isinstance(event.get("at"), str):
        whole = replace(whole, changed=event["at"])
    kind, text = event.get("type"), str(event.get("text") or "")
    if kind == "user":
        turns.append(Turn(text))
    elif kind == "system":
        return replace(whole, system=text)
    elif kind == "models":
        target, draft = str(event.get("target") or ""), str(event.get("draft") or "")
        return replace(whole, target=target, draft=draft)
    elif kind == "dropped" and isinstance(event.get("n_turns"), int):
        return replace(whole, n_dropped=min(max(0, event["n_turns"]), len(turns)))
    elif turns and kind == "undo":
        turns.pop()
        return replace(whole, n_dropped=min(whole.n_dropped, len(turns)))
    elif turns:
        turns[-1] = _told(turns[-1], event, text)
    return whole


def _told(turn: Turn, event: Mapping[str, Any], text: str) -> Turn:
    """Return the last turn with what a line says of it."""
    match event.get("type"):
        case "text" if event.get("thought"):
            return replace(turn, thought=turn.thought + text)
        case "text":
            return replace(turn, answer=turn.answer + text)
        case "done":
            return replace(turn, reason=str(event.get("reason") or ""))
        case "retry":
            return Turn(turn.user)
    return turn


def _check_schema(head: Mapping[str, Any], name: str) -> None:
    schema = head.get("schema")
    if not isinstance(schema, int) or not 1 <= schema <= SCHEMA:
        raise UsageError(
            f"{name}: is a conversation of schema {schema}, this specli knows {SCHEMA}",
            "a newer specli wrote it",
        )


def as_json(whole: Conversation) -> str:
    """Return a conversation as JSON; `messages` are as chat APIs have them."""
    said: list[dict[str, Any]] = []
    if whole.system:
        said.append({"role": "system", "content": whole.system})
    for turn in whole.turns:
        said.append({"role": "user", "content": turn.user})
        if turn.answered or turn.thought:
            answer: dict[str, Any] = {"role": "assistant", "content": turn.answer}
            if turn.thought:
                answer["thought"] = turn.thought
            said.append({**answer, "reason": turn.reason or "interrupted"})
    about = {
        "format": MARK,
        "schema": SCHEMA,
        "id": whole.id,
        "created": whole.created,
        "changed": whole.changed,
        "target": whole.target,
        "draft": whole.draft,
        "settings": dict(whole.settings),
        "messages": said,
    }
    return json.dumps(about, indent=2, ensure_ascii=False) + "\n"


def from_json(text: str, name: str) -> Conversation:
    """Read exported JSON, or any list of messages with roles and contents. Raises UsageError."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{name}: is no JSON: {error}", "what was exported as JSON can be read, Markdown cannot"
        ) from None
    head = found if isinstance(found, dict) else {"messages": found}
    if "schema" in head:
        _check_schema(head, name)
    said = head.get("messages")
    if not isinstance(said, list) or not all(map(_is_message, said)):
        raise UsageError(
            f"{name}: holds no conversation",
            'wanted: {"messages": [{"role": "user", "content": "..."}, ...]}',
        )
    system, turns = "", list[Turn]()
    for message in said:
        role, content = message["role"], message["content"]
        if role == "system" and not turns:
            system = content
        elif role == "user":
            turns.append(Turn(content))
        elif role == "assistant" and turns and not turns[-1].reason:
            thought, reason = str(message.get("thought") or ""), message.get("reason") or "eog"
            turns[-1] = Turn(turns[-1].user, content, thought, str(reason))
        else:
            raise UsageError(f"{name}: the message {len(turns) + 1} of role {role} has no place")
    return Conversation("", now(), system=system, turns=tuple(turns))


def _is_message(message: Any) -> bool:
    return isinstance(message, dict) and all(
        isinstance(message.get(key), str) for key in ("role", "content")
    )


def as_markdown(whole: Conversation) -> str:
    """Return a conversation as a Markdown document."""
    return "\n\n".join(_paragraphs(whole)) + "\n"


def _paragraphs(whole: Conversation) -> Iterator[str]:
    yield f"<!-- {MARK} {whole.id} -->"
    yield f"# {whole.title or 'Conversation'}"
    yield f"{whole.target}, {whole.created[:10]}"
    if whole.system:
        yield "## System"
        yield whole.system
    for turn in whole.turns:
        yield "## User"
        yield turn.user
        yield "## Assistant"
        if turn.thought:
            yield f"<details><summary>Thought</summary>\n\n{turn.thought.strip()}\n\n</details>"
        if turn.answer.strip():
            yield turn.answer.strip()
        if turn.interrupted:
            yield "*(interrupted)*" if turn.answered or turn.thought else "*(not answered)*"
