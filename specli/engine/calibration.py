"""What decodes of a few sizes take, measured when a session begins."""

import random
import time
from collections.abc import Mapping, Sequence
from math import exp, inf, log
from statistics import median

import numpy as np

from specli.engine.costs import MISJUDGED, N_MAX, N_NEW, WIDTHS, interpolated
from specli.engine.types import Model

# What to measure first, each twice: the ends of what is mostly used; then between them and beyond.
_FIRST = 1, 8, 4, 2
_OTHERS = 16, 32, 3, 6, 5, 12, 7, 9, 10, 24, 48, 64
_IMPOSSIBLE = 2.0  # times n T(1): so long T(n) never is; of a machine that slept meanwhile, say


def measure_costs(
    model: Model, known: Mapping[int, float], budget_s: float, n_rows: int = N_MAX
) -> dict[int, float]:
    """Time decodes of an empty sequence, as many as the budget allows; leave it empty.

    known: what was measured or learned another time, in seconds by n. Some of these are measured
    again, T(1) and one that sticks out among them, and the others move with those next to them:
    what a busy hour taught does not outlast it. Where one has become more than a tenth dearer than
    most did, a tenth is believed: it may have been a busy moment. A GPU is believed. What is known
    to take far longer than so many decodes is forgotten. n_rows: most rows of logits that a decode
    returns. Returns all that is known then, T(1) among it, whatever it costs.
    """
    end = time.perf_counter() + budget_s
    first_s = _time(model, 1, n_rows)
    known = {n: seconds for n, seconds in known.items() if seconds < _IMPOSSIBLE * n * first_s}
    timed = {1: first_s}  # warm or not
    warm = {} if model.prepares else dict(timed)
    dear = _too_dear(known)
    likely = {n: seconds for n, seconds in known.items() if n not in dear}
    for n, is_warm in _to_measure(model.prepares, bool(known), dear):
        if n > min(model.n_batch, model.n_ctx):
            continue
        needed = n == 1 and not known and not warm  # on a GPU
        if not needed and time.perf_counter() + interpolated(timed | likely)[n] > end:
            continue
        timed[n] = _time(model, n, n_rows)
        if is_warm:
            warm[n] = min(timed[n], warm.get(n, inf))
    return warm | _moved(known, warm, is_sure=model.prepares)


def _moved(
    known: Mapping[int, float], measured: Mapping[int, float], *, is_sure: bool
) -> dict[int, float]:
    """Return what is known, moved to what was measured again: each size as those next to it.

    So one that nobody uses or measures again keeps its distance from them, however many starts
    there are (moved with all, by the median, it went astray). is_sure: all that was measured is.
    """
    again = sorted(measured.keys() & known.keys())
    if not again:
        return dict(known)
    logs = [log(measured[n] / known[n]) for n in again]
    if not is_sure:
        most = median(logs) - log(MISJUDGED)
        logs = [min(x, most) for x in logs]
    at = list(known)
    return {n: known[n] * exp(x) for n, x in zip(at, np.interp(at, again, logs), strict=True)}


def _to_measure(prepares: bool, is_known: bool, dear: Sequence[int]) -> list[tuple[int, bool]]:
    """Return which numbers of tokens to decode after a first one, and whether the time counts.

    Each several times, of which the fastest counts: the others had to wait or wake up. In turn, as
    a busy moment slows what comes together; on a GPU in a row, where one that comes after another
    size is slower. Where its first decode of a size loads its kernels it counts for nothing, and as
    it is fast all sizes are measured at every start. dear: sizes of which one is to be among them.
    """
    if prepares:
        again = [(n, True) for n in WIDTHS for _ in range(N_NEW + 1)]
        return again if is_known else [(n, False) for n in WIDTHS] + again
    sizes = (1, random.choice(dear), 8, 4) if dear else _FIRST
    others = () if is_known else _OTHERS
    return [(n, True) for n in (*sizes[1:], *sizes, *others, *others)]


def _too_dear(known: Mapping[int, float]) -> list[int]:
    """Return the sizes that are dearer than their neighbours let expect.

    Kernels may be so, or a busy moment was: what seems dear is not used, so nothing else tells.
    """
    at = sorted(known)
    found = []
    for low, n, high in zip(at, at[1:], at[2:], strict=False):
        expected = known[low] + (known[high] - known[low]) * (n - low) / (high - low)
        if expected < MISJUDGED * known[n]:
            found.append(n)
    return found


def measure_switch(model: Model) -> float:
    """Return what decodes take longer in all after one of another number of tokens, in seconds.

    0 where the model says that it does not matter. Leaves the sequence empty.
    """
    if not model.prepares:
        return 0.0
    other, n = 4, min(8, model.n_batch, model.n_ctx, model.n_rows)
    extra_s = []
    for _ in range(3):
        for _ in range(N_NEW + 1):
            _time(model, other)
        new_s = sum(_time(model, n) for _ in range(N_NEW))
        extra_s.append(new_s - N_NEW * _time(model, n))
    return max(0.0, median(extra_s))


def _time(model: Model, n: int, n_rows: int = N_MAX) -> float:
    started = time.perf_counter()
    model.decode([0] * n, min(n, n_rows, model.n_rows))
    seconds = time.perf_counter() - started
    model.truncate(0)
    return seconds
