"""The integers between two bounds, as a rule of GBNF."""

from collections.abc import Iterator

_N_DIGITS = 16  # where there is no bound, or as many as the other bound has


def integers(least: int | None, most: int | None) -> str:
    """Return the rule of the integers from least to most; None: no bound."""
    n_digits = max(_N_DIGITS, *(len(str(abs(bound or 0))) for bound in (least, most)))
    low = 1 - 10**n_digits if least is None else least
    high = 10**n_digits - 1 if most is None else most
    ways = []
    if low < 0:
        ways += [f'"-" {way}' for way in _naturals(max(1, -high), -low)]
    if high >= 0:
        ways += _naturals(max(0, low), high)
    return f"({' | '.join(ways)}) space"


def _naturals(low: int, high: int) -> Iterator[str]:
    """Yield rules of the numbers from low to high, neither of them negative."""
    for n in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (n - 1) if n > 1 else 0)
        last = min(high, 10**n - 1)
        yield from _same_length(str(first), str(last))


def _same_length(low: str, high: str) -> Iterator[str]:
    """Yield rules of the numbers from low to high, which have as many digits."""
    n = len(low)
    if low == "0" * n and high == "9" * n:
        yield f"[0-9]{{{n}}}"
    elif n == 1:
        yield _digit(int(low), int(high))
    elif low[0] == high[0]:
        yield f'"{low[0]}" ({" | ".join(_same_length(low[1:], high[1:]))})'
    else:
        first, last = int(low[0]), int(high[0])
        if low[1:] != "0" * (n - 1):
            yield f'"{first}" ({" | ".join(_same_length(low[1:], "9" * (n - 1)))})'
            first += 1
        ends_early = high[1:] != "9" * (n - 1)
        if first <= last - ends_early:
            yield f"{_digit(first, last - ends_early)} [0-9]{{{n - 1}}}"
        if ends_early:
            yield f'"{last}" ({" | ".join(_same_length("0" * (n - 1), high[1:]))})'


def _digit(first: int, last: int) -> str:
    return f'"{first}"' if first == last else f"[{first}-{last}]"
