"""What a generation cost and what speculation brought, folded from its events."""

from dataclasses import dataclass, field, replace
from itertools import zip_longest

from specli.engine.types import Costs, DraftPrefill, Event, Prefill, Round


@dataclass(slots=True)
class Stats:
    """Counts and times of one answer, with llama.cpp's names where it has them.

    Always true: predicted_n == draft_rounds + draft_n_accepted, less what a stop string cut off.
    """

    method: str
    reason_off: str = ""
    draft_muted: str = ""  # why the draft model could not follow the text, where it could not
    draft_unread_n: int = 0  # prompt tokens that the draft has not read: it would not have paid
    cache_n: int = 0  # prompt tokens that were in the cache already
    prompt_n: int = 0  # prompt tokens evaluated
    prompt_s: float = 0.0
    predicted_n: int = 0
    draft_n: int = 0  # guesses judged by the target
    draft_n_accepted: int = 0
    draft_rounds: int = 0  # passes of the target
    plain_rounds: int = 0  # those without a guess
    plain_n: int = 0  # tokens of rounds in which nobody was asked for a guess
    plain_s: float = 0.0  # and their time
    draft_s: float = 0.0
    target_s: float = 0.0
    host_s: float = 0.0
    accepted_at: list[int] = field(default_factory=list)  # rounds that accepted guess 1, 2, ...
    drafted_at: list[int] = field(default_factory=list)  # rounds that had a guess 1, 2, ...
    costs: Costs | None = None  # what the planner believes at the end

    def add(self, event: Event) -> None:
        """Take one event in."""
        if isinstance(event, Prefill):
            self.cache_n, self.prompt_n, self.prompt_s = event.n_cached, event.n_done, event.seconds
        elif isinstance(event, DraftPrefill):
            self.draft_unread_n = event.n_left
            self.draft_s += event.seconds
        elif isinstance(event, Round):
            self.predicted_n += len(event.tokens)
            self.draft_n += event.n_drafted
            self.draft_n_accepted += event.n_accepted
            self.draft_rounds += 1
            self.plain_rounds += not event.n_drafted
            self.draft_s += event.draft_s
            self.target_s += event.target_s
            self.host_s += event.host_s
            if not event.n_drafted and not event.draft_s:
                self.plain_n += len(event.tokens)
                self.plain_s += event.target_s + event.host_s
            count_positions(self.drafted_at, event.n_drafted)
            count_positions(self.accepted_at, event.n_accepted)

    @property
    def predicted_s(self) -> float:
        """Seconds from the end of the prompt to the last token."""
        return self.draft_s + self.target_s + self.host_s

    @property
    def mean_tokens_per_round(self) -> float:
        """Tokens that one pass of the target brought; 0 before the first."""
        return self.predicted_n / self.draft_rounds if self.draft_rounds else 0.0

    @property
    def predicted_per_second(self) -> float:
        """Tokens per second after the prompt; 0 before the first."""
        return self.predicted_n / self.predicted_s if self.predicted_s else 0.0

    @property
    def mean_k(self) -> float:
        """Guesses in a round; 0 before the first."""
        return self.draft_n / self.draft_rounds if self.draft_rounds else 0.0

    @property
    def gain(self) -> float | None:
        """How many times as fast as plain decoding this was, if T(1) is what the planner believes.

        Rounds without guesses were plain decoding, whatever is believed. No round costs less than
        T(1), so the gain is never above the tokens of a round. None where nothing is believed.
        """
        one_s = self.costs.target_s.get(1) if self.costs else None
        if not one_s or not self.predicted_s:
            return None
        plain_s = self.plain_s + (self.predicted_n - self.plain_n) * one_s
        return min(plain_s / self.predicted_s, max(self.mean_tokens_per_round, 1.0))

    @property
    def lost(self) -> bool:
        """Whether plain decoding was faster for certain, though nobody measured it.

        Its rounds take no longer than those of more tokens less their drafts, so what was accepted
        saved no more than as many of these, and the drafts took longer.
        """
        round_s = (self.target_s + self.host_s) / max(self.draft_rounds, 1)
        saved_s = self.draft_n_accepted * round_s
        return self.draft_n > 0 and self.draft_s > saved_s

    @property
    def accepted_per_position(self) -> list[float | None]:
        """Which share of the guesses at position 1, 2, ... of a round was accepted."""
        columns = zip_longest(self.accepted_at, self.drafted_at, fillvalue=0)
        return [_ratio(accepted, drafted) for accepted, drafted in columns]

    def as_dict(self) -> dict[str, object]:
        """Return the statistics as the command line's contract names them."""
        return {
            "method": self.method,
            "reason_off": self.reason_off or None,
            "draft_muted": self.draft_muted or None,
            "draft_unread_n": self.draft_unread_n,
            "cache_n": self.cache_n,
            "prompt_n": self.prompt_n,
            "prompt_ms": _ms(self.prompt_s),
            "predicted_n": self.predicted_n,
            "predicted_ms": _ms(self.predicted_s),
            "predicted_per_second": round(self.predicted_per_second, 4),
            "draft_n": self.draft_n,
            "draft_n_accepted": self.draft_n_accepted,
            "draft_rounds": self.draft_rounds,
            "plain_rounds": self.plain_rounds,
            "mean_k": round(self.mean_k, 4),
            "estimated_gain": None if self.gain is None else round(self.gain, 4),
            "believed_costs": self.costs
            and {
                "target_ms": {str(n): _ms(s) for n, s in self.costs.target_s.items()},
                "draft_ms": _ms(self.costs.draft_s),
            },
            "acceptance_rate": _ratio(self.draft_n_accepted, self.draft_n),
            "mean_tokens_per_round": round(self.mean_tokens_per_round, 4),
            "accepted_per_position": self.accepted_per_position,
            "draft_ms": _ms(self.draft_s),
            "target_ms": _ms(self.target_s),
            "host_ms": _ms(self.host_s),
        }


def joined(first: Stats, second: Stats) -> Stats:
    """Return the statistics of an answer that came in two parts, the second after another prompt.

    cache_n is what the first found; what the second evaluated again counts as evaluated.
    """
    both = replace(second, cache_n=first.cache_n)
    both.prompt_n += first.prompt_n
    both.prompt_s += first.prompt_s
    both.predicted_n += first.predicted_n
    both.draft_n += first.draft_n
    both.draft_n_accepted += first.draft_n_accepted
    both.draft_rounds += first.draft_rounds
    both.plain_rounds += first.plain_rounds
    both.plain_n += first.plain_n
    both.plain_s += first.plain_s
    both.draft_s += first.draft_s
    both.target_s += first.target_s
    both.host_s += first.host_s
    both.accepted_at = _sums(first.accepted_at, second.accepted_at)
    both.drafted_at = _sums(first.drafted_at, second.drafted_at)
    return both


def _sums(first: list[int], second: list[int]) -> list[int]:
    return [a + b for a, b in zip_longest(first, second, fillvalue=0)]


def count_positions(counts: list[int], n: int) -> None:
    """Count a round that reached positions 1 to n."""
    counts.extend([0] * (n - len(counts)))
    for i in range(n):
        counts[i] += 1


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _ratio(a: float, b: float) -> float | None:
    return round(a / b, 4) if b else None
