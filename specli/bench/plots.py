"""Plots drawn by matplotlib: as SVG that becomes part of a page, or as files of their own."""

import io
import re
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specli.bench.curves import Plot, Series
from specli.errors import SpecliError
from specli.files import unwritable, write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Drawn in these; in a page each becomes the variable beside it, which follows light and dark.
_FOREGROUND, _MUTED, _GRID, _PLAIN = "#1f2328", "#59636e", "#d1d9e0", "#8c959f"
_COLORS = (
    *("#0a66c2", "#c4500c", "#1a7f5a", "#9a3fb5"),
    *("#8a6d00", "#b3265e", "#4d6b8a", "#6a6a6a"),
)
_VARIABLES = {
    **{_FOREGROUND: "--fg", _MUTED: "--muted", _GRID: "--line", _PLAIN: "--host"},
    **{color: f"--c{i}" for i, color in enumerate(_COLORS)},
}
_MARKERS = "os^DvPX*"
_SVG = "http://www.w3.org/2000/svg"  # a name, not an address: nothing looks there
_SIZE = (5.6, 3.7)  # inches
_DPI = 200
_SETTINGS: Any = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "specli",  # the same numbers give the same file
    "text.parse_math": False,  # names of categories come from anywhere
    "font.size": 9,
    "font.family": ["DejaVu Sans", "sans-serif"],  # the first comes with matplotlib
    "text.color": _FOREGROUND,
    "axes.edgecolor": _MUTED,
    "axes.labelcolor": _MUTED,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "legend.frameon": False,
}


def check_matplotlib() -> None:
    """Raise SpecliError where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise SpecliError(
            f"plots need matplotlib, which cannot be imported: {error}",
            "pip install matplotlib",
        ) from None


def inline_svg(plot: Plot, prefix: str) -> str:
    """Return a plot as an SVG element for a page of HTML, without an address in it.

    Colours are variables of the page. prefix: of the ids in it, its own in each page.
    """
    root = _tree(_saved(plot, "svg"))
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {
            _local(name): _for_page(_local(name), value, prefix)
            for name, value in element.attrib.items()
        }
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-label": f"{plot.title}. {plot.said}"}
    return ElementTree.tostring(root, encoding="unicode")


def write_plot(plot: Plot, path: Path) -> None:
    """Write a plot as the PNG or SVG that the name says. Raises SpecliError."""
    drawn = _saved(plot, path.suffix.removeprefix("."), title=True)
    if path.suffix == ".svg":
        ElementTree.register_namespace("", _SVG)
        drawn = ElementTree.tostring(_tree(drawn))
    try:
        write_whole(path, drawn)
    except OSError as error:
        raise unwritable(path, error) from None


def _saved(plot: Plot, kind: str, title: bool = False) -> bytes:
    check_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    file = io.BytesIO()
    # A category may be called by letters that the font lacks: then a box is drawn.
    with rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        figure = Figure(figsize=_SIZE, layout="constrained", facecolor="white" if title else "none")
        _draw(plot, figure)
        if title:
            figure.suptitle(plot.title, fontsize=10.5)
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        metadata = nothing if kind == "svg" else {"Software": None}
        figure.savefig(file, format=kind, dpi=_DPI, metadata=metadata)
    return file.getvalue()


def _draw(plot: Plot, figure: "Figure") -> None:
    axes = figure.add_subplot()
    axes.set_facecolor("none")
    axes.tick_params(length=0)
    bars = [series for series in plot.series if series.style == "bars"]
    colors = _colored_series(plot)
    for i, series in enumerate(plot.series):
        if series.style == "bars":
            _draw_bars(axes, series, bars.index(series), len(bars), colors[i])
        else:
            _draw_line(axes, series, i, colors[i])
    if plot.ticks:
        axes.set_xticks(range(len(plot.ticks)), list(plot.ticks))
        if sum(map(len, plot.ticks)) > 55:
            axes.tick_params("x", rotation=30)
    axes.set_ylim(bottom=0)
    if plot.x_max is not None:
        axes.set_xlim(0, plot.x_max)
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    n_columns = 4 if max(len(series.name) for series in plot.series) < 14 else 2
    figure.legend(loc="outside lower center", ncols=n_columns)


def _colored_series(plot: Plot) -> list[str]:
    """Return a colour for each series: plain decoding and ideals are grey, a formula as its points.

    A series of points comes before its formula.
    """
    colors: list[str] = []
    n = 0
    for series in plot.series:
        if series.name.startswith("formula"):
            colors.append(colors[-1])
        elif series.name == "plain" or series.style == "dashed":
            colors.append(_PLAIN if series.name == "plain" else _MUTED)
        else:
            colors.append(_COLORS[n % len(_COLORS)])
            n += 1
    return colors


def _draw_bars(axes: "Axes", series: Series, i: int, n: int, color: str) -> None:
    width = 0.8 / n
    for x, y, spread in zip(series.x, series.y, series.spreads, strict=True):
        if y is None or spread is None:
            continue
        at = x + (i - (n - 1) / 2) * width
        label = series.name if x == series.x[0] else None
        axes.bar(at, y, 0.9 * width, color=color, label=label)
        axes.vlines(at, spread.low, spread.high, color=_FOREGROUND, linewidth=1)


def _draw_line(axes: "Axes", series: Series, i: int, color: str) -> None:
    y = [float("nan") if value is None else value for value in series.y]
    is_formula = series.name.startswith("formula")
    style: dict[str, Any] = {"color": color, "label": None if is_formula else series.name}
    marker = _MARKERS[i % len(_MARKERS)]
    if series.style == "points":
        axes.plot(series.x, y, marker, markersize=6, **style)
    elif series.style == "dashed":
        axes.plot(series.x, y, "--", linewidth=1.3, **style)
    else:
        axes.plot(series.x, y, f"-{marker}", **style)


def _tree(svg: bytes) -> ElementTree.Element:
    """Return a drawing without what is not drawn, and with its style where it concerns no other."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    root.set("style", "stroke-linejoin: round; stroke-linecap: butt")
    return root


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _for_page(name: str, value: str, prefix: str) -> str:
    """Return the value of an attribute, with colours that follow the page and ids of its own."""
    if name == "id":
        return prefix + value
    if name == "href":
        return value.replace("#", f"#{prefix}")
    return _colored(value.replace("url(#", f"url(#{prefix}"))


def _colored(style: str) -> str:
    for color, variable in _VARIABLES.items():
        style = style.replace(color, f"var({variable})")
    return re.sub("font-family: [^;]*", "font-family: inherit", style)
