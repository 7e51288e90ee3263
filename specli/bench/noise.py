"""How far numbers of a benchmark vary by themselves, and what is more than that."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt

_Z = 1.96  # of a normal distribution, 19 of 20 lie within so many standard deviations
_FEW = {1: 12.71, 2: 4.30, 3: 3.18}
_MOST = log(3.0)  # beyond that a number is not worth reading
_MEDIAN = 1.25  # how much wider medians spread than means


@dataclass(frozen=True, slots=True)
class Noise:
    """The standard deviation of the logarithms of numbers that should be equal.

    n_free: degrees of freedom, of all groups of such numbers; 0 where nothing is known.
    """

    deviation: float
    n_free: int

    def bound(self, *n: int) -> float:
        """Return what two medians, of n numbers each, differ by at most, 19 times of 20.

        As a logarithm; infinite where nothing is known.
        """
        if not self.n_free:
            return inf
        return _student(self.n_free) * _MEDIAN * self.deviation * sqrt(sum(1 / some for some in n))


def pooled(groups: Iterable[Sequence[float]]) -> Noise:
    """Return the noise within groups of numbers, each of which measured the same several times."""
    squares, n_free = 0.0, 0
    for group in groups:
        logs = [log(value) for value in group]
        mean = sum(logs) / len(logs)
        squares += sum((value - mean) ** 2 for value in logs)
        n_free += len(logs) - 1
    return Noise(sqrt(squares / n_free) if n_free else 0.0, n_free)


def percent(bound: float) -> str:
    """Return a bound as people read it: ±7%; - where nothing is known, or next to nothing."""
    return "-" if bound > _MOST else f"±{100 * (exp(bound) - 1):.0f}%"


def _student(n_free: int) -> float:
    """Return the same of Student's t as _Z of the normal distribution.

    Its expansion in 1/n is off for the smallest n.
    """
    if n_free in _FEW:
        return _FEW[n_free]
    z = _Z
    first = (z**3 + z) / (4 * n_free)
    return z + first + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n_free**2)
