"""The whole of an answer in one picture: its tokens over time, and what the time went into."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

from specli.trace import TracedAnswer, TracedRound

WIDTH, HEIGHT = 1000.0, 200.0  # of the picture; it is stretched


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis. at: percent of its length."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Overview:
    """Paths of the picture, and its axes. plain: of plain decoding, "" where that is not known.

    spans: the stretches of draft, target and host, by these names. plain_s: what plain decoding
    would have taken.
    """

    steps: str
    plain: str
    spans: dict[str, str]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    plain_s: float | None


def overview(answer: TracedAnswer) -> Overview:
    """Return the picture of an answer."""
    rounds, costs = answer.rounds, answer.stats.costs
    total_s = sum(one.seconds for one in rounds) or 1.0
    n_tokens = sum(len(one.tokens) for one in rounds)
    one_s = costs.target_s.get(1) if costs else None
    plain = ""
    if one_s:
        n_plain = min(n_tokens, total_s / one_s)
        x, y = n_plain * one_s / total_s * WIDTH, HEIGHT * (1 - n_plain / n_tokens)
        plain = f"M0 {HEIGHT:g}L{x:.1f} {y:.1f}"
    return Overview(
        _steps(rounds, total_s, n_tokens),
        plain,
        _spans(rounds, total_s),
        _ticks(total_s, " s"),
        _ticks(n_tokens, ""),
        one_s * n_tokens if one_s else None,
    )


def _steps(rounds: Sequence[TracedRound], total_s: float, n_tokens: int) -> str:
    """Return tokens over time: they come when their round ends."""
    path, at_s, n = [f"M0 {HEIGHT:g}"], 0.0, 0
    for one in rounds:
        at_s += one.seconds
        n += len(one.tokens)
        path.append(f"H{at_s / total_s * WIDTH:.1f}V{HEIGHT * (1 - n / n_tokens):.1f}")
    return "".join(path)


def _spans(rounds: Sequence[TracedRound], total_s: float) -> dict[str, str]:
    """Return a path for each part of the rounds, of rectangles from 0 to 1 in height."""
    paths: dict[str, list[str]] = {"draft": [], "target": [], "host": []}
    at_s = 0.0
    for one in rounds:
        parts = ("draft", one.draft_s), ("target", one.target_s), ("host", one.host_s)
        for name, part_s in parts:
            if part_s > 0:
                x, width = at_s / total_s * WIDTH, part_s / total_s * WIDTH
                paths[name].append(f"M{x:.2f} 0h{width:.2f}v1h{-width:.2f}z")
            at_s += part_s
    return {name: "".join(path) for name, path in paths.items()}


def _ticks(most: float, unit: str) -> list[Tick]:
    """Return round numbers from 0 to `most`, four to eight of them."""
    rough = most / 5
    power = 10.0 ** floor(log10(rough)) if rough > 0 else 1.0
    step = power * next(n for n in (1, 2, 5, 10) if n * power >= rough)
    if not unit:
        step = max(step, 1.0)
    n_ticks = floor(most / step * (1 + 1e-9))
    return [Tick(i * step / most * 100, f"{i * step:g}{unit}") for i in range(n_ticks + 1)]
