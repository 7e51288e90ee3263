"""What the line at the foot of a streaming answer says."""

from collections.abc import Sequence

from wcwidth import wcswidth

from specli.cli.screen import clipped, for_terminal, is_unicode
from specli.engine.stats import Stats

DIM, RESET = "\x1b[2m", "\x1b[0m"


def numbers(stats: Stats, k: int, n_used: int, n_ctx: int, drafter: str) -> list[str]:
    """Return what is known of an answer so far, the most wanted first.

    k: guesses of the last round. n_used: tokens that the context holds.
    """
    parts = [f"{stats.predicted_per_second:.1f} tok/s"]
    # Without a guess it was plain decoding: what differs is chance.
    if stats.gain and stats.draft_n:
        parts.append(f"{stats.gain:.1f}x plain")
    if stats.draft_n:
        parts.append(f"{stats.draft_n_accepted / stats.draft_n:.0%} accepted")
    if stats.method != "none":
        parts += [f"{stats.mean_tokens_per_round:.1f} tok/round", f"k {k}"]
    parts.append(f"{n_used} of {n_ctx}")
    return [*parts, drafter]


def reading(n_done: int, n_total: int, seconds: float) -> list[str]:
    """Say how far the prompt has been read, after some seconds of it."""
    parts = [f"reading the prompt: {n_done} of {n_total} tokens"]
    if n_done and seconds > 1:
        parts.append(f"{seconds * (n_total - n_done) / n_done:.0f} s left")
    return parts


def thinking(seconds: float, n_tokens: int) -> str:
    """Say that the model thinks, and for how long."""
    return f"thinking {seconds:.1f} s ({n_tokens} tokens)"


def thought(seconds: float, n_tokens: int) -> str:
    """Say that the model has thought."""
    return f"thought for {seconds:.1f} s ({n_tokens} token{'s' if n_tokens != 1 else ''})"


def fitted(parts: Sequence[str], width: int, encoding: str = "utf-8") -> str:
    """Return as many of the parts as fit into some cells, in a quiet style; "" for none."""
    if not parts or width < 1:
        return ""
    between = " · " if is_unicode(encoding) else " | "
    kept = [for_terminal(part, encoding) for part in parts]
    while len(kept) > 1 and wcswidth(between.join(kept)) > width:
        kept.pop()
    return f"{DIM}{clipped(between.join(kept), width)}{RESET}"
