"""specli bench report: the page and the plots of a benchmark."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specli.cli.streams import say, write
from specli.errors import SpecliError

if TYPE_CHECKING:
    from specli.bench.records import Records


def report(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="Records of specli bench.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE.html",
            help="Where the page goes.",
            show_default="FILE.html in the current folder",
        ),
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FOLDER", help="Write the plots as PNG, too.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FOLDER", help="Write the plots as SVG, too.")
    ] = None,
) -> None:
    """Write one page of a benchmark: verdict, plots, numbers, machine, settings.

    The page is one file for a browser, and needs no network. stdout has the paths of all that was
    written; plots of the same name are written over. The plots need matplotlib.

    \b
    Example:
      specli bench report bench.jsonl --png plots
    """
    from specli.bench.page import bench_page
    from specli.bench.plots import check_matplotlib
    from specli.bench.record_files import load
    from specli.pages.files import check_page, write_page

    path = out or Path(f"{file.stem}.html")
    records = load(file)
    check_page(path)
    check_matplotlib()
    if records.is_cut:
        say("warning", f"{file}: the last line is cut, and does not count")
    for folder in (png, svg):
        if folder is not None:
            _make(folder)
    write_page(path, bench_page(records, file.name))
    write(f"{path}\n")
    for folder, kind in ((png, "png"), (svg, "svg")):
        if folder is not None:
            _write_plots(records, file.stem, folder, kind)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecliError(f"{folder}: cannot be made: {error.strerror or error}") from None


def _write_plots(records: "Records", stem: str, folder: Path, kind: str) -> None:
    from specli.bench.page import plots_of
    from specli.bench.plots import write_plot

    for plot in plots_of(records):
        path = folder / f"{stem}-{plot.slug}.{kind}"
        write_plot(plot, path)
        write(f"{path}\n")
