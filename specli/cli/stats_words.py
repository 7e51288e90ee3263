"""The statistics of an answer in words, for people."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specli.assemble import Session
    from specli.engine.stats import Stats
    from specli.engine.types import Reason

_GUESSERS = {"draft": "a draft model", "ngram": "n-grams of the text", "none": "nothing"}
UNREAD = "the draft, which would have to read the prompt first, costs more here than it brings"
_N_POSITIONS = 8  # that are shown
_REASONS: dict["Reason", str] = {
    "eog": "the model was done",
    "length": "cut by --max-tokens",
    "stop": "at a stop string",
    "context": "cut by the full context",
    "interrupted": "interrupted",
}


def guessed_by(session: "Session") -> str:
    """Return what guesses in a session, by the names that --draft takes."""
    if session.method == "none":
        return f"no drafts ({session.reason_off})" if session.reason_off else "no drafts"
    draft = session.pair.draft
    name = draft if isinstance(draft, str) else draft.name
    return f"drafts by {name}" + (" and ngram" if session.method == "both" else "")


def in_words(stats: "Stats", reason: "Reason") -> dict[str, str]:
    """Return what an answer cost and what speculation brought, by name."""
    rows = {
        "prompt": f"{stats.prompt_n} tokens evaluated, {stats.cache_n} remembered,"
        f" {stats.prompt_s:.2f} s",
        "answer": f"{stats.predicted_n} tokens in {stats.predicted_s:.2f} s,"
        f" {stats.predicted_per_second:.1f}/s",
        "end": _REASONS[reason],
        "guessed by": _GUESSERS.get(stats.method, "a draft model and n-grams of the text"),
    }
    if why := stats.reason_off or stats.draft_muted or (UNREAD if stats.draft_unread_n else ""):
        rows["not guessed"] = why
    # Without a guess it was plain decoding: what differs is chance.
    if stats.gain and stats.draft_n:
        rows["beside plain"] = f"about {stats.gain:.1f} times as fast"
    elif stats.lost:
        rows["beside plain"] = "slower: drafts took longer than what was accepted can have saved"
    if stats.draft_n:
        rows["guesses"] = (
            f"{stats.draft_n_accepted} of {stats.draft_n} accepted,"
            f" {stats.draft_n_accepted / stats.draft_n:.0%}"
        )
        shares = [f"{share:.0%}" for share in stats.accepted_per_position if share is not None]
        more = ["..."] if len(shares) > _N_POSITIONS else []
        rows["by position"] = ", ".join(shares[:_N_POSITIONS] + more)
    rows["rounds"] = (
        f"{stats.draft_rounds}, {stats.plain_rounds} without a guess,"
        f" {stats.mean_tokens_per_round:.2f} tokens each"
    )
    times = ("target", stats.target_s), ("drafts", stats.draft_s), ("the rest", stats.host_s)
    rows["time"] = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times)
    return rows
