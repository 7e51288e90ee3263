"""specli bench compare: two benchmarks beside each other."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specli.cli.streams import say, write, write_lines
from specli.cli.table import table
from specli.errors import UsageError

if TYPE_CHECKING:
    from specli.bench.compare import Difference


def compare(
    a: Annotated[Path, typer.Argument(help="Records of specli bench.")],
    b: Annotated[Path, typer.Argument(help="Others, made before or after them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two benchmarks: what the second does faster or slower, and whether that is certain.

    A difference is beyond the spread where the median of each file lies outside of what the other
    varied, and by more than chance does 1 time of 20. Machine, files or settings that differ are
    warned of on stderr.

    \b
    Example:
      specli bench compare before.jsonl after.jsonl
    """
    from specli.bench.compare import as_dicts, unlike
    from specli.bench.compare import compare as compared
    from specli.bench.record_files import load

    records = load(a), load(b)
    for path, some in zip((a, b), records, strict=True):
        if not any(some.runs()):
            raise UsageError(f"{path}: holds no answers", "files of specli bench are wanted")
        if some.is_cut:
            say("warning", f"{path}: the last line is cut, and does not count")
    found = compared(*records)
    warnings = unlike(*records)
    for warning in warnings:
        say("warning", f"not the same in both: {warning}")
    if as_json:
        differences = as_dicts(found)
        said = {"a": str(a), "b": str(b), "unlike": warnings, "differences": differences}
        write(json.dumps(said, indent=2) + "\n")
        return
    write_lines(_as_text(found))


def _as_text(found: "list[Difference]") -> list[str]:
    lines = []
    for temperature in dict.fromkeys(d.temperature for d in found):
        here = [d for d in found if d.temperature == temperature]
        several = len({d.draft for d in here} - {"none"}) > 1
        lines += [f"temperature {temperature:g}, tokens per second: median (min to max)", ""]
        head = ("category", "with", "A", "B", "B / A", "chance", "beyond")
        lines += [*table([head, *(_row(d, several) for d in here)], left=2, grouped=True), ""]
    return lines[:-1]


def _row(d: "Difference", several: bool) -> tuple[str, ...]:
    from specli.bench.noise import percent

    name = f"{d.draft}, {d.contestant}" if several and d.draft != "none" else d.contestant
    sides = (f"{s.median:.1f} ({s.low:.1f} to {s.high:.1f})" for s in (d.a, d.b))
    certain = ("faster" if d.ratio > 1 else "slower") if d.beyond else "no"
    return (d.category, name, *sides, f"{d.ratio:.2f}", percent(d.bound), certain)
