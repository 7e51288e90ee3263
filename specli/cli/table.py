"""Tables of plain text: they read the same on a terminal and in a pipe."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], left: int = 1, *, grouped: bool = False) -> list[str]:
    """Return rows, a head first, as lines with aligned columns; only the first `left` to the left.

    grouped: a first cell that repeats the one above it is left empty.
    """
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    above = ""
    for row in rows:
        line = ""
        for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
            cell = "" if grouped and i == 0 and cell == above else cell
            blank = " " * (width - cell_len(cell))
            line += f"{cell}{blank}  " if i < left else f"{blank}{cell}  "
        lines.append(line.rstrip())
        above = row[0]
    return lines
