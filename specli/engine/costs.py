"""What a decode of n tokens costs on this machine, now."""

import random
import time
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, inf, log
from statistics import median

import numpy as np
from numpy.typing import NDArray

from specli.engine.types import Model

N_MAX = 64
# Tokens that a target decodes which prepares itself anew for each other number of them.
WIDTHS = 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64
# What to measure first, each twice: the ends of what is mostly used; then between them and beyond.
_FIRST = 1, 8, 4, 2
_OTHERS = 16, 32, 3, 6, 5, 12, 7, 9, 10, 24, 48, 64
# Decodes of a new number of tokens that a GPU takes longer for: the first is launched kernel by
# kernel, the second is recorded (CUDA graphs), those after it are played back.
_N_NEW = 2
_PRIOR_SLOPE = 0.1  # of T(1), for each more token, where nothing but T(1) is known
_CLIP = 0.25  # of the logarithm: how much of a decode's error is believed
_MISJUDGED = 0.9  # of what was measured: what takes less was measured in a busy moment
_IMPOSSIBLE = 2.0  # times n T(1): so long T(n) never is; of a machine that slept meanwhile, say
_LEAST_S = 1e-9
_LEVEL_GAIN = 0.2
_BLOCK = 4  # rows that kernels compute in about the time of fewer
_ROW = 0.1  # of T(1): what a row of logits costs, where nothing is known of it
_CORRECTION_GAIN = 0.2
_FADE = 0.99
_N_READ = 256  # tokens of a batch in which a prompt is read
_READ_GAIN = 0.3  # of the last batch, in what is believed of the next one
_ROWS = 1.2  # times as long takes a token in a large batch that returns a row of logits for each


class CostCurve:
    """Seconds of one decode of 1 to N_MAX tokens, T(n).

    T(n) = base(n) x level x correction(n). base is what was measured, interpolated; it has the
    steps of the kernels' blocks. Beyond that it goes on to what batches of prompts take: few sizes
    can be measured within a second, what seems dear is not used, and so nothing else would tell.
    level follows the machine: a neighbour, a battery, idle clocks.
    The correction is learned for each n that is used and carries over to those between. Both move
    by a share of each decode's clipped error, as running quantiles do: single slow decodes count
    for little, a change is followed within some rounds. Only a first decode of n tokens that is
    faster than was measured is believed at once: nothing makes decodes faster than they are, and a
    busy moment slowed what was measured. Where a decode has not as many tokens as
    the one before, switch_s comes on top of T(n), spread over it and the next: they tell of that
    alone.
    """

    def __init__(
        self,
        measured: Mapping[int, float],
        switch_s: float = 0.0,
        each_s: float = 0.0,
        *,
        all_rows: bool = False,
    ) -> None:
        """measured: seconds of a decode of n tokens, for n = 1 at least, to N_MAX.

        each_s: of a token more in a batch of a prompt; 0 where that is not known. all_rows: whether
        decodes return a row of logits for each token, which batches of prompts never do.
        """
        self.switch_s = switch_s
        self._last = 0  # tokens of the last decode
        self._n_same = 0  # decodes of as many before it, in a row
        self._extra_s = 0.0  # what they took longer than T(n)
        self.each_s = each_s
        self._measured = dict(measured)
        self._rows = _ROWS if all_rows else 1.0
        self._level = 0.0  # logarithms, this and the corrections
        self._base = self._new_base()
        self._corrections: dict[int, float] = {}
        self._used: list[int] = []  # the n that have one, increasing
        self._n_seen: Counter[int] = Counter()

    def seconds(self) -> NDArray[np.float64]:
        """Return T(n) at index n, (N_MAX + 1,); index 0 holds 0."""
        used = self._used or [1]
        corrections = [self._corrections.get(n, 0.0) for n in used]
        logs = np.interp(np.arange(N_MAX + 1), used, corrections)
        return self._base * np.exp(self._level + logs)

    def at(self, n: int) -> float:
        """Return T(n); beyond N_MAX of a batch that returns no rows, if that is known."""
        if n > N_MAX and self.each_s:
            return self.at(1) + (n - 1) * self.each_s
        if n > N_MAX:
            return self.at(N_MAX) * n / N_MAX
        return float(self._base[n]) * exp(self._level + self._correction(n))

    def observe(self, n: int, seconds: float | None) -> None:
        """Learn from one decode of n tokens. seconds: None where something else slowed it."""
        self._n_same = self._n_same + 1 if n == self._last else 0
        self._last = n
        if seconds is None:
            self._n_same = _N_NEW  # a change that was not seen is not taken for a cheap one
            return
        if not 1 <= n <= N_MAX or seconds < _LEAST_S:
            return
        if self.switch_s and self._n_same < _N_NEW:
            self._extra_s = seconds - self.at(n) + (self._extra_s if self._n_same else 0.0)
            if self._n_same == _N_NEW - 1:
                extra_s = min(max(self._extra_s, 0.0), 2 * self.switch_s)
                self.switch_s += _LEVEL_GAIN * (extra_s - self.switch_s)
            return
        self._n_seen[n] += 1
        error = log(seconds / self.at(n))
        if self._n_seen[n] == 1 and seconds < _MISJUDGED * min(self.at(n), float(self._base[n])):
            gain = 1.0
        else:
            error = min(max(error, -_CLIP), _CLIP)
            gain = max(_CORRECTION_GAIN, 1.0 / (2 + self._n_seen[n]))
            self._level += _LEVEL_GAIN * error
        correction = self._correction(n) + gain * error
        if n not in self._corrections:
            insort(self._used, n)
        self._corrections[n] = correction

    def read(self, n: int, seconds: float) -> None:
        """Learn from a batch of n tokens of a prompt, where it is a large one.

        What is faster than believed is so; what is slower may have been a busy moment.
        """
        if n <= N_MAX:
            return
        each_s = max((seconds - self.at(1)) / (n - 1), _LEAST_S)
        believed_s = self.each_s or (self.at(N_MAX) - self.at(1)) / (N_MAX - 1) / self._rows
        if each_s > _MISJUDGED * believed_s > 0.0:
            error = min(max(log(each_s / believed_s), -_CLIP), _CLIP)
            each_s = believed_s * exp(_READ_GAIN * error)
        self.each_s = each_s
        for used in self._used:  # what was learned of these stays
            if used not in self._measured:
                self._measured[used] = float(self._base[used]) * exp(self._corrections.pop(used))
        self._used = sorted(self._corrections)
        self._base = self._new_base()

    def fade(self) -> None:
        """Let what was learned fade a little: else what is believed to be dear stays unused."""
        self._level *= _FADE
        self._corrections = {n: _FADE * c for n, c in self._corrections.items()}

    def _correction(self, n: int) -> float:
        """Return the correction of n: linear between those learned, the nearest one's beyond."""
        if (own := self._corrections.get(n)) is not None or not self._used:
            return own or 0.0
        at = bisect_left(self._used, n)
        below, above = self._used[max(at - 1, 0)], self._used[min(at, len(self._used) - 1)]
        low, high = self._corrections[below], self._corrections[above]
        return low if below == above else low + (high - low) * (n - below) / (above - below)

    def known(self) -> dict[int, float]:
        """Return seconds by n for every n that was measured or used: what is worth keeping."""
        return {n: self.at(n) for n in sorted(self._measured.keys() | self._corrections.keys())}

    def _new_base(self) -> NDArray[np.float64]:
        """Return T(0..N_MAX) at level 0, which goes on to what a prompt takes."""
        measured = dict(self._measured)
        if self.each_s:
            read_s = measured[1] + (_N_READ - 1) * self.each_s * self._rows / exp(self._level)
            measured[_N_READ] = max(read_s, *measured.values())
        return _interpolated(measured)


def ratios_of_rows(costs: CostCurve) -> CostCurve:
    """Return how many times as long decodes may take that return a row for each token, by n.

    costs: of those that return one. It learns such ratios as others learn seconds.
    """
    row_s = _ROW * costs.at(1)
    blocks = range(_BLOCK, N_MAX + 1, _BLOCK)
    seconds = {n: costs.at(n) + (n - 1) * row_s for n in blocks}
    few = {n: seconds[_BLOCK] / costs.at(n) for n in range(2, _BLOCK)}
    return CostCurve({1: 1.0} | few | {n: s / costs.at(n) for n, s in seconds.items()})


def _interpolated(measured: dict[int, float]) -> NDArray[np.float64]:
    """Return T(0..N_MAX): linear between what was measured, its last slope beyond."""
    at = sorted(measured)
    if at[0] > 1:
        raise ValueError("T(1) was not measured")
    first = measured[1]
    if len(at) == 1:
        slope = _PRIOR_SLOPE * first
    else:
        (a, b) = at[-2:]
        slope = max(0.0, (measured[b] - measured[a]) / (b - a))
    if at[-1] < N_MAX:
        measured[N_MAX] = measured[at[-1]] + slope * (N_MAX - at[-1])
        at.append(N_MAX)
    seconds = np.interp(np.arange(N_MAX + 1), at, [measured[n] for n in at])
    seconds[0] = 0.0
    return seconds


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
        if not needed and time.perf_counter() + _interpolated(timed | likely)[n] > end:
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
        most = median(logs) - log(_MISJUDGED)
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
        again = [(n, True) for n in WIDTHS for _ in range(_N_NEW + 1)]
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
        if expected < _MISJUDGED * known[n]:
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
        for _ in range(_N_NEW + 1):
            _time(model, other)
        new_s = sum(_time(model, n) for _ in range(_N_NEW))
        extra_s.append(new_s - _N_NEW * _time(model, n))
    return max(0.0, median(extra_s))


def _time(model: Model, n: int, n_rows: int = N_MAX) -> float:
    started = time.perf_counter()
    model.decode([0] * n, min(n, n_rows, model.n_rows))
    seconds = time.perf_counter() - started
    model.truncate(0)
    return seconds
