"""Where pages go, and what they never replace."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from specli.errors import SpecliError, UsageError
from specli.pages.files import MADE_BY, check_page, free_name, write_free, write_page


def test_a_page_replaces_a_page_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    for text in ("", f"<head>{MADE_BY} 0.1"):
        path.write_text(text)
        check_page(path)
    path.write_text("my thesis")
    with pytest.raises(UsageError, match="not written over"):
        check_page(path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.html"]


def test_places_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        check_page(tmp_path)
    with pytest.raises(UsageError, match="there is no folder"):
        check_page(tmp_path / "missing" / "a.html")
    with pytest.raises(UsageError, match="is no regular file"):
        check_page(Path(os.devnull))
    with pytest.raises(SpecliError, match="cannot be written"):
        check_page(Path("/proc/a.html"))
    with pytest.raises(SpecliError, match="cannot be written"):
        write_page(Path("/proc/a.html"), "")


def test_a_link_stays_a_link_and_nothing_half_written_stays(tmp_path: Path) -> None:
    (tmp_path / "real.html").write_text("")
    link = tmp_path / "link.html"
    link.symlink_to(tmp_path / "real.html")
    write_page(link, "page")
    assert link.is_symlink()
    assert (tmp_path / "real.html").read_text() == "page"
    assert len(list(tmp_path.iterdir())) == 2


def test_the_next_free_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.html", "a-2.html"):
        assert free_name("a") == Path(name)
        Path(name).write_text("")
    assert free_name("a") == Path("a-3.html")
    with ThreadPoolExecutor(4) as pool:
        written = list(pool.map(lambda text: write_free("a", text), "wxyz"))
    assert sorted(map(str, written)) == [f"a-{n}.html" for n in (3, 4, 5, 6)]
    assert sorted(path.read_text() for path in written) == ["w", "x", "y", "z"]
