"""Tables of plain text: they read the same on a terminal and in a pipe."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return rows, a head first, as lines with aligned columns; only the first `left` to the left.

    A cell of the first columns that repeats the one above it is left empty.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    above: Sequence[str] = ()
    for row in rows:
        cells = ["" if row[:1] == above[:1] and i == 0 else cell for i, cell in enumerate(row)]
        padded = (
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        lines.append("  ".join(padded).rstrip())
        above = row
    return lines
