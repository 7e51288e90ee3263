"""What specli bench shows: progress while it runs, tables and a verdict when it is done."""

import shlex
import textwrap
from collections.abc import Collection, Mapping, Sequence
from math import inf

from specli.bench.contest import PLAIN
from specli.bench.noise import percent
from specli.bench.records import ModelFile, Run, Setup
from specli.bench.summary import (
    Advice,
    Line,
    Way,
    advise,
    by_position,
    first_way,
    gain,
    joules_per_token,
    lines,
    temperatures,
    time_split,
    verdict,
    ways,
)
from specli.cli.table import table
from specli.text import human_size

_POSITIONS = 12  # that are shown
_WIDTH = 80
_MANY_BITS = "F32", "F16", "Q8_0"  # of which a draft in four bits is much cheaper


def report(
    setup: Setup,
    runs: Sequence[Run],
    target: str,
    told: Mapping[str, str],
    large: Collection[str] = (),
) -> list[str]:
    """Return the answer of a benchmark as lines of text.

    target: as the user called it. told: the same of the drafts, by their labels. large: labels of
    drafts that fewer bits would make smaller.
    """
    advice = advise(runs)
    if advice is None:
        return ["No prompt was answered by plain and by speculative decoding: nothing to compare."]
    several = len({way.draft for way in ways(runs)}) > 1
    said = [f"{setup.cpu}, {setup.n_threads} threads; target {setup.target.name}"]
    said += [""] if several else [f"draft {advice.best.draft}", ""]
    for temperature in temperatures(runs):
        said += [f"temperature {temperature:g}", ""]
        said += [*_temperature(lines(runs, temperature), several, advice), ""]
    said += [*_details(setup, runs, advice, several), ""]
    said += _wrapped(_advised(advice, several))
    if advice.verdict != "unclear":
        said.append(_settings_line(advice, target, told))
    if not setup.drafts and setup.target.description.endswith(_MANY_BITS):
        said.append(f"no model guessed; this makes one: specli derive {shlex.quote(target)}")
    best = advice.best.draft
    if best in large and all(file.label in large for file in setup.drafts):
        command = f"specli derive {shlex.quote(told[best])}"
        said.append(f"in fewer bits {best} may guess faster: {command}")
    return said


def _temperature(some: Sequence[Line], several: bool, advice: Advice) -> list[str]:
    """Return the table of the best way, what it says, and the ratios of all where there are more.

    some: of one temperature.
    """
    found = list(dict.fromkeys(line.way for line in some))
    gains = {way: gain(line for line in some if line.way == way) for way in found}
    shown = first_way(some, advice)
    of_shown = [line for line in some if line.way == shown]
    said = table([_head(shown), *map(_row, of_shown)])
    said += ["", *_wrapped(f"{_name(shown, several)}: {verdict(of_shown)}")]
    if len(found) == 1:
        return said
    categories = list(dict.fromkeys(line.category for line in some))
    ratios = {(line.way, line.category): f"{line.ratio.median:.2f}" for line in some}
    rows = [("times as fast", *categories, "all")]
    for way in found:
        cells = (ratios.get((way, category), "-") for category in categories)
        k = _name(way, several=False)
        rows.append((f"  {k}" if several else k, *cells, f"{gains[way]:.2f}"))
    head, *body = table(rows)
    said += ["", head]
    draft = ""
    for way, line in zip(found, body, strict=True):
        if several and way.draft != draft:  # names may be long: each has a line of its own
            draft = way.draft
            said.append(draft)
        said.append(line)
    return said


def _head(way: Way) -> tuple[str, ...]:
    speeds = "plain/s", f"{_name(way, several=False)}/s"
    return ("category", *speeds, "ratio", "chance", "min-max", "accepted", "tok/round", "k")


def _row(line: Line) -> tuple[str, ...]:
    ratio = line.ratio
    return (
        line.category,
        f"{line.plain.median:.1f}",
        f"{line.speed.median:.1f}",
        f"{ratio.median:.2f}",
        percent(line.bound),
        f"{ratio.low:.2f}-{ratio.high:.2f}",
        "-" if line.acceptance is None else f"{line.acceptance:.0%}",
        f"{line.tokens_per_round:.2f}",
        f"{line.mean_k:.1f}",
    )


def _settings_line(advice: Advice, target: str, told: Mapping[str, str]) -> str:
    """Return the command that uses what was best."""
    command = ["specli", "run", "--target", target]
    way = advice.way
    flags = ["--draft", told[way.draft], "--draft-tokens", way.k] if way else ["--draft", "none"]
    return f"keep: {shlex.join([*command, *flags])}"


def _details(setup: Setup, runs: Sequence[Run], advice: Advice, several: bool) -> list[str]:
    """Return acceptance by position, the split of time, memory, and energy where it is known."""
    way = advice.best
    some = [run for run in runs if Way(run.draft, run.contestant) == way]
    name = _name(way, several)
    said = []
    if rates := by_position(some):
        more = " ..." if len(rates) > _POSITIONS else ""
        shown = " ".join(f"{rate:.0%}" for rate in rates[:_POSITIONS])
        said.append(f"accepted at position 1, 2, ... of {name}:")
        said.append(f"  {shown}{more}")
    split = ", ".join(f"{part} {share:.0%}" for part, share in time_split(some).items())
    said.append(f"time of {name}: {split}")
    plain = [run for run in runs if run.contestant == PLAIN.name]
    joules = joules_per_token(plain), joules_per_token(some)
    if joules[0] is not None and joules[1] is not None:
        said.append(f"energy of a token: plain {joules[0]:.2f} J, {name} {joules[1]:.2f} J")
    return [*said, "", *_memory([setup.target, *setup.drafts])]


def _memory(files: Sequence[ModelFile]) -> list[str]:
    rows = [("memory", "weights", "KV cache", "buffers")]
    for file in files:
        sizes = file.weights_bytes, file.cache_bytes, file.compute_bytes
        weights, cache, compute = (human_size(n) if n else "-" for n in sizes)
        rows.append((file.label or file.name, weights, cache, compute))
    return table(rows)


def _advised(advice: Advice, several: bool) -> str:
    gained = f"{advice.gain:.2f} times as fast as plain decoding"
    if (bound := percent(advice.bound)) != "-":
        gained += f", {bound}"
    elif advice.way is None:
        once = advice.bound == inf
        why = "One run of each is too few" if once else "The runs vary too much here"
        return f"{why} to tell: {gained}, over all that was run."
    if advice.verdict == "slower":
        return f"Slower here: at best {gained}, over all that was run."
    if advice.way is None:
        return f"No clear difference here: at best {gained}, over all that was run."
    draft = advice.way.draft
    what = f"best draft: {draft}, k {advice.way.k}" if several else f"best: k {advice.way.k}"
    return f"Worth it here; {what}: {gained}, over all that was run."


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _name(way: Way, several: bool) -> str:
    k = way.contestant if way.contestant == "auto" else f"k={way.k}"
    return f"{way.draft}, {k}" if several else k
