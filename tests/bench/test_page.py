"""The report of a benchmark whose numbers are known."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from specli.bench.curves import costs, gains, pass_costs, positions
from specli.bench.page import bench_page, plots_of
from specli.bench.plots import write_plot
from specli.bench.records import ModelFile, Passes, Records, Run, Setup
from specli.bench.summary import Way, lines
from specli.bench.theory import mix, speed_up, tokens
from specli.errors import UsageError
from tests.bench.test_summary import PLAIN, runs

FILE = ModelFile("t.gguf", 10**9, "ab" * 32, "llama 1B", 10**9, 10**8, 10**7, "t")
SETUP = Setup(*("<b>CPU", 2, 1, "0.1", "", "llama", FILE, (FILE,), "specli bench"))
COSTS = {1: 0.1, 2: 0.12, 3: 0.14, 4: 0.16}
EVIL = "$x^$ <script>"


def records(*temperatures: float) -> Records:
    """Return plain, auto and two fixed k at some temperatures; a category has an evil name."""
    found: list[Run] = []
    for temperature in temperatures or (0.0,):
        found += runs(PLAIN, temperature=temperature)
        for k, speed in ((None, 15.0), (2, 12.0), (3, 8.0)):
            speeds = {category: [speed, speed * 1.01] for category in PLAIN}
            name = f"k={k}" if k else "auto"
            found += [replace(r, k=k) for r in runs(speeds, name, "d", temperature)]
    found = [replace(r, k=0) if r.contestant == "plain" else r for r in found]
    found = [replace(r, category=EVIL) if r.category == "chat" else r for r in found]
    return Records((SETUP,), (Passes("", COSTS, 0.01, "d"), *found))


@cache
def page_of_records() -> str:
    """Return their page."""
    return bench_page(records(), "r.jsonl")


def test_the_formula_is_what_everybody_quotes() -> None:
    assert tokens(0.5, 3) == pytest.approx((1 - 0.5**4) / 0.5)
    assert tokens(1.0, 3) == 4
    a, k, c, v = 0.8, 3, 0.1, 1.6
    quoted = (1 - a ** (k + 1)) / ((1 - a) * (c * k + v))
    assert speed_up(a, {k: 7}, 0.01, COSTS) == pytest.approx(quoted)
    assert speed_up(a, {0: 5}, 0.01, COSTS) == pytest.approx(1.0)


def test_what_stands_behind_a_wrong_guess_says_nothing() -> None:
    found = mix(runs({"code": [10.0]}))  # rounds of 2 guesses, of which 2 and 1 are right
    assert found
    assert found.a == pytest.approx(3 / 4)
    assert found.ks == {2: 40}
    assert mix([]) is None


def test_curves() -> None:
    some = list(records().runs())
    passes = costs(pass_costs(records().passes()))
    assert passes
    measured, flat, one_by_one = passes.series
    assert measured.y == pytest.approx([100, 120, 140, 160])
    assert flat.y == pytest.approx([100] * 4)
    assert one_by_one.y[0] == pytest.approx(100)
    assert one_by_one.y[1] is None  # beyond the top
    shares = positions(some, Way("d", "auto"), several=False)
    assert shares
    assert shares.series[0].y == pytest.approx((100, 50))
    plot = gains(some, lines(some, 0.0), COSTS, {"d": 0.01})
    assert plot
    assert all(x == pytest.approx(75) for x in plot.series[1].x)


def test_the_page_shows_all_and_holds_no_address() -> None:
    page = page_of_records()
    for said in ("Worth it here", "1.51 times as fast", "&lt;b&gt;CPU", "specli bench", "ab" * 32):
        assert said in page
    assert page.count("<svg") == page.count("<figcaption>") == 4 + 1
    assert page.count("<path") > 50
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)
    assert not re.findall(r"\w+://|xmlns|DOCTYPE svg|<metadata", page)
    assert "<script> " not in page
    assert "$x^$ &lt;script&gt;" in page
    assert "#0a66c2" not in page.partition("</style>")[2]  # colours follow light and dark


def test_plots_as_files(tmp_path: Path) -> None:
    plots = plots_of(records(0.0, 1.0))
    assert len({plot.slug for plot in plots}) == len(plots) == 9
    write_plot(plots[0], tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    for name in ("a.svg", "b.svg"):
        write_plot(plots[0], tmp_path / name)
    drawn = (tmp_path / "a.svg").read_bytes()
    assert drawn == (tmp_path / "b.svg").read_bytes()
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert len(list(tmp_path.iterdir())) == 3


def test_nothing_to_compare_is_said() -> None:
    for some in (Records(), Records((SETUP,), tuple(runs(PLAIN)))):
        with pytest.raises(UsageError, match="nothing to compare"):
            bench_page(some, "r.jsonl")
