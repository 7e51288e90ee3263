"""Progress bars: what they say of the time, and that they go away on real terminals."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.progress import Progress

from specli.cli.waiting import _TimeLeft

BAR = """
import time
from specli.cli.waiting import Waiting
waiting = Waiting()
for i in range(8):
    waiting.show("loading it", i / 8)
    time.sleep(0.1)
waiting.close()
print("done", flush=True)
input()
"""


def test_no_more_time_is_said_to_be_left_than_there_is() -> None:
    bars = Progress(disable=True)
    bars.add_task("it", total=1.0)
    (task,) = bars.tasks
    left = _TimeLeft()
    assert left.render(task).plain == "-:--:--"
    left.at_most = time.perf_counter() + 100.9
    assert left.render(task).plain == "0:01:40"
    left.at_most = 0.0
    assert left.render(task).plain == "0:00:00"


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no terminal but tmux is at hand")
def test_a_bar_leaves_nothing(tmp_path: Path) -> None:
    """A frame of a bar comes in the place of the one before, on a terminal that is not ours."""
    (tmp_path / "bar.py").write_text(BAR)
    root = Path(__file__).parents[2]
    tmux = ["tmux", "-S", str(tmp_path / "s"), "-f", "/dev/null"]
    line = f"PYTHONPATH={root} {sys.executable} {tmp_path / 'bar.py'}"
    subprocess.run(
        [*tmux, "new-session", "-d", "-s", "x", "-x", "80", "-y", "20", line], check=True
    )
    try:
        text = ""
        for _ in range(200):
            shown = [*tmux, "capture-pane", "-p", "-t", "x", "-S", "-"]
            text = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
            assert text.count("loading it") <= 1, text
            if "done" in text:
                break
            time.sleep(0.05)
        assert text.strip() == "done"
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
