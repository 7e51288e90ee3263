"""Write tests/templates/goldens.json: what transformers makes of the chat templates there."""

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

FOLDER = Path(__file__).parent.parent / "tests" / "templates"
TODAY = datetime(2026, 1, 2, 3, 4, 5)

SYSTEM = {"role": "system", "content": "You are brief."}
TURNS = [
    {"role": "user", "content": "Name a colour."},
    {"role": "assistant", "content": "Blue."},
    {"role": "user", "content": "Another one?"},
]
THOUGHTS = "<think>\nA colour, then.\n</think>\n\nBlue."
REASONED = {"role": "assistant", "content": "Blue.", "reasoning_content": "A colour, then."}
CONVERSATIONS: dict[str, list[dict[str, str]]] = {
    "user": TURNS[:1],
    "system": [SYSTEM, TURNS[0]],
    "turns": TURNS,
    "system and turns": [SYSTEM, *TURNS],
    "empty": [{"role": "user", "content": ""}],
    "unicode": [{"role": "user", "content": "  Grüße, 世界 🙂 <b> \"'{{ x }}\\\n\n"}],
    "tags in the answer": [TURNS[0], {"role": "assistant", "content": THOUGHTS}, TURNS[2]],
    "thought": [TURNS[0], REASONED, TURNS[2]],
}
SWITCHED = ("user", "system and turns")  # conversations with thinking on and off


def main() -> None:
    """Render everything."""
    families = json.loads((FOLDER / "families.json").read_text(encoding="utf-8"))
    goldens = {name: of_family(name, family) for name, family in families.items()}
    text = json.dumps(
        {"conversations": CONVERSATIONS, "today": TODAY.isoformat(), "goldens": goldens},
        ensure_ascii=False,
        indent=1,
    )
    (FOLDER / "goldens.json").write_text(text + "\n", encoding="utf-8")


def of_family(name: str, family: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return by the user's choice and conversation what comes out, or what is raised."""
    wanted: dict[str, tuple[dict[str, Any], Iterable[str]]] = {"hide": ({}, CONVERSATIONS)}
    if "on" in family:
        wanted |= {"show": (family["on"], SWITCHED), "off": (family["off"], SWITCHED)}
    return {
        think: {which: rendered(name, family, which, variables) for which in conversations}
        for think, (variables, conversations) in wanted.items()
    }


def rendered(
    name: str, family: dict[str, Any], which: str, variables: dict[str, Any]
) -> dict[str, str]:
    """Return the text that transformers makes, or the error."""
    from transformers.utils import chat_template_utils

    conversation: list[dict[str, Any]] = [dict(message) for message in CONVERSATIONS[which]]
    if family.get("parts"):
        for message in conversation:
            message["content"] = [{"type": "text", "text": message["content"]}]
    with patch.object(chat_template_utils, "datetime") as clock:
        clock.now.return_value = TODAY
        try:
            (text,), _ = chat_template_utils.render_jinja_template(
                [conversation],
                chat_template=(FOLDER / f"{name}.jinja").read_bytes().decode("utf-8"),
                add_generation_prompt=True,
                bos_token=family["bos"],
                eos_token=family["eos"],
                **variables,
            )
        except Exception as error:
            return {"error": str(error)}
    return {"text": text}


if __name__ == "__main__":
    main()
