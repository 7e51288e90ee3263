"""Write docs/specli.1, the manual page, from the tree of commands.

click-man does the same for click; typer brings a click of its own, which it does not know.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from specli import __version__
from specli.cli.app import app

PAGE = Path(__file__).parent.parent / "docs" / "specli.1"
_END = r"""
.SH EXIT STATUS
0 done, 1 failed, 2 wrong usage, 3 model or download, 4 this pair cannot work, 130 interrupted.
.SH ENVIRONMENT
.B HF_HOME, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE
are what they are to huggingface_hub.
.B SPECLI_DEBUG=1
adds the traceback to an error.
"""


def page() -> str:
    """Return the page."""
    root = get_command(app)
    lines = [f'.TH SPECLI 1 "" "specli {__version__}" "User Commands"', ".SH NAME"]
    lines += [r"specli \- speculative decoding for local GGUF models", ".SH SYNOPSIS"]
    lines += [".B specli", r"[\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGS\fR]", ".SH DESCRIPTION"]
    lines += [*_text(root.help), ".SH COMMANDS"]
    for path, command in _commands("specli", root):
        lines += [f'.SS "{_quoted(path)}"', *_text(command.help), *_parameters(command)]
    return "\n".join(lines) + _END


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    for name, below in getattr(command, "commands", {}).items():
        yield f"{path} {name}", below
        yield from _commands(f"{path} {name}", below)


def _parameters(command: Any) -> Iterator[str]:
    for parameter in command.params:
        text = getattr(parameter, "help", "") or ""
        if getattr(parameter, "hidden", False):
            continue
        if parameter.param_type_name == "argument":
            yield from (".TP", rf"\fI{_quoted(parameter.make_metavar(_context(command)))}\fR")
        else:
            names = [*parameter.opts, *parameter.secondary_opts]
            flag = ", ".join(rf"\fB{_quoted(name)}\fR" for name in names)
            value = "" if parameter.is_flag else parameter.make_metavar(_context(command))
            yield from (".TP", f"{flag} {_quoted(value)}".strip())
        yield from _text(text) or [r"\&"]


def _context(command: Any) -> Any:
    return command.context_class(command, info_name=command.name)


def _text(text: str | None) -> list[str]:
    """Return a help text as lines of troff; what stood after \\b keeps its lines."""
    lines: list[str] = []
    for i, block in enumerate((text or "").strip().split("\n\n")):
        lines += [".PP"] if i else []
        if block.startswith("\b"):
            lines += [".nf", *(_line(line) for line in block.splitlines()[1:]), ".fi"]
        else:
            lines += [_line(line.strip()) for line in block.splitlines()]
    return lines


def _line(line: str) -> str:
    quoted = _quoted(line)
    return rf"\&{quoted}" if quoted[:1] in (".", "'") else quoted


def _quoted(text: str) -> str:
    return text.replace("\\", r"\e").replace("-", r"\-")


def main() -> None:
    """Write the page, or say with --check whether it is fresh."""
    fresh = page()
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(fresh, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != fresh:
        sys.exit("error: docs/specli.1 is stale; run scripts/make_man")


if __name__ == "__main__":
    main()
