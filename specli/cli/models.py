"""specli models: what concerns models and no answer."""

import typer

from specli.cli.pull import pull

models = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Models and their files.")
models.command()(pull)


@models.callback()
def _models() -> None:
    """Models and their files.

    Example: specli models pull llama-8b
    """
