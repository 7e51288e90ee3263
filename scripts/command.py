"""A function of a script as a command, in the way of specli's own."""

import sys
from collections.abc import Callable

import typer

from specli.errors import SpecliError


def run(main: Callable[..., None]) -> int:
    """Run it; an error is one line and a hint."""
    app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    app.command()(main)
    try:
        app()
    except SpecliError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return 0
