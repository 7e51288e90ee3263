"""What a decode of n tokens costs on this machine, now."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping
from math import exp, log

import numpy as np
from numpy.typing import NDArray

N_MAX = 64
# Tokens that a target decodes which prepares itself anew for each other number of them.
WIDTHS = 1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64
# Decodes of a new number of tokens that a GPU takes longer for: the first is launched kernel by
# kernel, the second is recorded (CUDA graphs), those after it are played back.
N_NEW = 2
_PRIOR_SLOPE = 0.1  # of T(1), for each more token, where nothing but T(1) is known
_CLIP = 0.25  # of the logarithm: how much of a decode's error is believed
MISJUDGED = 0.9  # of what was measured: what takes less was measured in a busy moment
LEAST_S = 1e-9  # so long a decode takes at least
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
            self._n_same = N_NEW  # a change that was not seen is not taken for a cheap one
            return
        if not 1 <= n <= N_MAX or seconds < LEAST_S:
            return
        if self.switch_s and self._n_same < N_NEW:
            self._extra_s = seconds - self.at(n) + (self._extra_s if self._n_same else 0.0)
            if self._n_same == N_NEW - 1:
                extra_s = min(max(self._extra_s, 0.0), 2 * self.switch_s)
                self.switch_s += _LEVEL_GAIN * (extra_s - self.switch_s)
            return
        self._n_seen[n] += 1
        error = log(seconds / self.at(n))
        if self._n_seen[n] == 1 and seconds < MISJUDGED * min(self.at(n), float(self._base[n])):
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
        each_s = max((seconds - self.at(1)) / (n - 1), LEAST_S)
        believed_s = self.each_s or (self.at(N_MAX) - self.at(1)) / (N_MAX - 1) / self._rows
        if each_s > MISJUDGED * believed_s > 0.0:
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
        return interpolated(measured)


def ratios_of_rows(costs: CostCurve) -> CostCurve:
    """Return how many times as long decodes may take that return a row for each token, by n.

    costs: of those that return one. It learns such ratios as others learn seconds.
    """
    row_s = _ROW * costs.at(1)
    blocks = range(_BLOCK, N_MAX + 1, _BLOCK)
    seconds = {n: costs.at(n) + (n - 1) * row_s for n in blocks}
    few = {n: seconds[_BLOCK] / costs.at(n) for n in range(2, _BLOCK)}
    return CostCurve({1: 1.0} | few | {n: s / costs.at(n) for n, s in seconds.items()})


def interpolated(measured: dict[int, float]) -> NDArray[np.float64]:
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
