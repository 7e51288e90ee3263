"""What `specli bench` runs, in which order, and how much of it fits into a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, zip_longest

from specli.bench.contest import Contestant, rotated
from specli.bench.prompts import Prompt, by_category

SWEPT = (1, 2, 3, 4, 6, 8, 12, 16)
MAX_TOKENS, N_PROMPTS, N_REPEATS = 128, 2, 3
QUICK_REPEATS = 6  # at most: where time is left
# Prompts of each category, repeats, tokens: the first that fits is taken.
_LADDER = ((2, 3, 96), (2, 3, 64), (1, 3, 64), (1, 3, 48), (1, 2, 48), (1, 2, 32), (1, 1, 32))


@dataclass(frozen=True, slots=True)
class Part:
    """What is compared at once: all contestants on one prompt, one after the other."""

    prompt: Prompt
    temperature: float
    repeat: int
    contestants: tuple[Contestant, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that is to be run. repeats: None for as many as time allows."""

    contestants: tuple[Contestant, ...]
    prompts: tuple[Prompt, ...]
    temperatures: tuple[float, ...]
    max_tokens: int
    repeats: int | None

    def parts(self) -> Iterator[Part]:
        """Yield what is to be run, a prompt of each category in turn.

        The order of the contestants changes from part to part: what drifts hits all alike.
        """
        for repeat in count() if self.repeats is None else range(self.repeats):
            for i, prompt in enumerate(self.prompts):
                for temperature in self.temperatures:
                    order = tuple(rotated(self.contestants, i + repeat))
                    yield Part(prompt, temperature, repeat, order)

    @property
    def categories(self) -> list[str]:
        """Return the categories of the prompts."""
        return list(dict.fromkeys(prompt.category for prompt in self.prompts))


def contestants(
    drafts: Sequence[str], k: int | None, ks: Sequence[int] = ()
) -> tuple[Contestant, ...]:
    """Return plain decoding and, for each draft, k guesses a round; ks: and auto and these."""
    found = [Contestant("plain", "plain", 0, "none")]
    for draft in drafts:
        for some in dict.fromkeys([k, *((None, *ks) if ks else ())]):
            name, group = ("auto", "auto") if some is None else (f"k={some}", "fixed")
            found.append(Contestant(name, group, some, draft))  # type: ignore[arg-type]
    return tuple(found)


def chosen(prompts: Sequence[Prompt], n: int) -> tuple[Prompt, ...]:
    """Return the first n prompts of each category, those of all categories in turn."""
    columns = [some for _, some in by_category(list(prompts), n)]
    return tuple(prompt for row in zip_longest(*columns) for prompt in row if prompt)


@dataclass(frozen=True, slots=True)
class Speeds:
    """What a run takes, roughly: seconds of a token of a prompt and of an answer.

    of_draft_s: of a token of a prompt, by draft.
    """

    prompt_s: float
    token_s: float
    of_draft_s: Mapping[str, float]

    def seconds(self, schedule: Schedule, lengths: Mapping[str, int]) -> float:
        """Return what one repeat of a schedule takes. lengths: tokens of each prompt."""
        n_temperatures, total = len(schedule.temperatures), 0.0
        for contestant in schedule.contestants:
            prompt_s = self.prompt_s + self.of_draft_s.get(contestant.draft, 0.0)
            for prompt in schedule.prompts:
                answer_s = schedule.max_tokens * self.token_s
                total += n_temperatures * (lengths[prompt.id] * prompt_s + answer_s)
        return total


def fitted(
    whole: Schedule,
    seconds: Callable[[Schedule], float],
    budget_s: float,
    least_tokens: int = 0,
) -> tuple[Schedule, str]:
    """Return as much of a schedule as fits, and in words what of it that is.

    seconds: what one repeat of a schedule takes. least_tokens: of an answer, whatever fits. Where
    nothing fits, the least is returned. All the repeats stay in it, as what takes less time than
    expected can be run more often.
    """
    smaller = whole
    for n_prompts, repeats, max_tokens in _LADDER:
        smaller = replace(
            whole,
            prompts=chosen(whole.prompts, n_prompts),
            repeats=min(whole.repeats or repeats, repeats),
            max_tokens=min(whole.max_tokens, max(max_tokens, least_tokens)),
        )
        if seconds(smaller) * (smaller.repeats or 1) <= budget_s:
            break
    # Long prompts cost the most: the shortest categories stay.
    while len(smaller.prompts) > 1 and seconds(smaller) > budget_s:
        costs = {p.id: seconds(replace(smaller, prompts=(p,))) for p in smaller.prompts}
        longest = max(smaller.prompts, key=lambda p: costs[p.id])
        smaller = replace(smaller, prompts=tuple(p for p in smaller.prompts if p != longest))
    smaller = replace(smaller, repeats=whole.repeats)
    over = "" if seconds(smaller) <= budget_s else "; even that takes longer"
    return smaller, _said(whole, smaller) + over


def _said(whole: Schedule, smaller: Schedule) -> str:
    n_runs = "once" if smaller.repeats == 1 else f"up to {smaller.repeats} times"
    said = f"{len(smaller.prompts)} of {len(whole.prompts)} prompts {n_runs} each,"
    said += f" {smaller.max_tokens} tokens an answer"
    left_out = [c for c in whole.categories if c not in smaller.categories]
    return said + (f"; left out: {', '.join(left_out)}" if left_out else "")
