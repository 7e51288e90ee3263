"""Where a page goes: names as long as a file system takes, links that lead nowhere."""

from pathlib import Path

import pytest

from specli.errors import SpecliError
from specli.pages.files import check_page, write_page


def test_a_name_as_long_as_names_can_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / f"{'a' * 250}.html"
    check_page(path)
    write_page(path, "page")
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "page"


def test_links_in_a_circle_are_refused_before_anything_takes_time(tmp_path: Path) -> None:
    one, other = tmp_path / "one.html", tmp_path / "other.html"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(SpecliError, match=r"one\.html: cannot be written"):
        check_page(one)
    assert one.is_symlink()
