"""specli models: what concerns models and no answer."""

import typer

from specli.cli.models_check import check
from specli.cli.models_edit import add, rm
from specli.cli.models_show import info, list_models, path
from specli.cli.pull import pull

models = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Models and their files.")
models.command("list")(list_models)
for command in (info, path, check, pull, add, rm):
    models.command()(command)


@models.callback()
def _models() -> None:
    """Models and their files.

    Example: specli models list
    """
