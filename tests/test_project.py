"""What is generated is fresh, and what is promised about the tree holds."""

import subprocess
import sys
import zipfile
from pathlib import Path

from scripts.make_man import PAGE, page

ROOT = Path(__file__).parent.parent


def test_the_command_line_reference_is_fresh() -> None:
    command = [sys.executable, "-m", "typer", "specli.cli.app", "utils", "docs"]
    command += ["--name", "specli", "--title", "Command line"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (ROOT / "docs" / "cli.md").read_text().strip(), (
        "run scripts/make_cli_docs"
    )


def test_the_manual_page_is_fresh() -> None:
    assert PAGE.read_text() == page(), "run scripts/make_man"


def test_the_wheel_holds_the_registry(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path)]
    subprocess.run([*command, str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("specli-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "specli/models.toml" in names
    assert "specli/cli/app.py" in names
    assert "specli/bench/prompts.jsonl" in names
    assert {f"specli/pages/templates/{name}" for name in ("trace.html", "page.js")} <= {*names}
    assert any(name.endswith(".data/data/share/man/man1/specli.1") for name in names)
    assert not any(name.startswith("tests") for name in names)


def test_every_exit_code_of_the_readme_is_one_of_the_errors() -> None:
    from specli import errors

    codes = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.SpecliError)
    }
    assert codes == {1, 2, 3, 4, 130}
