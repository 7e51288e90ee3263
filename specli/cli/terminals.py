"""What terminals can do."""

import os


def is_dumb() -> bool:
    """Say whether the terminal can do nothing but print: prompt_toolkit and rich say the same."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")
