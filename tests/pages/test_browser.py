"""The pages in a browser: nothing complains, everything is drawn."""

import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from specli.pages.trace_page import trace_page
from tests.bench.test_page import page_of_records
from tests.pages.test_trace_page import make_trace

NAMES = "chromium", "chromium-browser", "google-chrome", "chrome"
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), "")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-extensions", "--enable-logging=stderr", "--v=0", "--window-size=1600,1400"),
)
FRAME = '<iframe src="{}" style="border:0;width:790px;height:1390px"></iframe>'


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")
def test_pages_open_without_complaints_and_with_their_plots_drawn(tmp_path: Path) -> None:
    (tmp_path / "trace.html").write_text(trace_page(make_trace()))
    (tmp_path / "bench.html").write_text(page_of_records())
    both = FRAME.format("trace.html") + FRAME.format("bench.html")
    (tmp_path / "both.html").write_text(f"<!doctype html><body style='margin:0'>{both}")
    shot = tmp_path / "shot.png"
    done = subprocess.run(
        [
            *(CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}"),
            *(f"--screenshot={shot}", (tmp_path / "both.html").as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert shot.exists(), done.stderr
    assert "CONSOLE" not in done.stderr
    with Image.open(shot) as image:
        pixels = image.convert("RGB")
    halves = (pixels.crop(box) for box in ((0, 0, 795, 1390), (805, 0, 1600, 1390)))
    left, right = ({color: n for n, color in half.getcolors(1 << 21) or ()} for half in halves)
    # Curve, chips and strip of the trace; bars and lines of the benchmark.
    for color in ((45, 164, 78), (218, 251, 225), (255, 235, 233), (221, 244, 255), (10, 102, 194)):
        assert left.get(color, 0) > 100, color
    for color in ((10, 102, 194), (196, 80, 12), (140, 149, 159)):
        assert right.get(color, 0) > 100, color
