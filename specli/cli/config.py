"""specli config: what is chosen for good, and where each setting comes from."""

import os
import shlex
import subprocess
import sys
from typing import Annotated

import typer

from specli.cli.known_words import setting_names
from specli.cli.streams import say, write, write_lines
from specli.errors import SpecliError, UsageError

config = typer.Typer(name="config", invoke_without_command=True, rich_markup_mode=None)

Key = Annotated[
    str,
    typer.Argument(
        metavar="KEY",
        help="The name of an option, or pairs.TARGET.draft.",
        autocompletion=setting_names,
    ),
]


@config.callback()
def show(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show every setting, and where it comes from; or change them.

    A flag comes before the environment, that before the top of config.toml, that before what the
    file says of the target ([pairs."TARGET"]), that before the default. Each option has a
    variable, which its command's --help names; one that is set to nothing is not set.

    \b
    Examples:
      specli config
      specli config set temp 0.7
      specli config set pairs.llama-8b.draft llama-1b
    """
    if context.invoked_subcommand is not None:
        return
    from specli.cli.config_show import settings_json, settings_text

    root = context.find_root().command
    if as_json:
        write(settings_json(root))
    else:
        write_lines(settings_text(root))


@config.command()
def get(context: typer.Context, key: Key) -> None:
    """Print one setting as it holds now. Exits with 1 where there is none.

    \b
    Example:
      specli config get target
    """
    from specli.cli.config_show import value_of, worded

    value = value_of(context.find_root().command, key)
    if value is None:
        raise SpecliError(f"{key} is not set", "specli config shows what is")
    write(f"{worded(value)}\n")


@config.command("set", context_settings={"ignore_unknown_options": True})
def set_(
    key: Key,
    values: Annotated[
        list[str], typer.Argument(metavar="VALUE", help="What it is to be; for stop, one or more.")
    ],
) -> None:
    """Write a setting into config.toml, if it makes sense; comments there stay.

    \b
    Examples:
      specli config set target llama-8b
      specli config set stop "User:" "###"
      specli config set pairs.llama-8b.draft_tokens auto
    """
    from specli.cli.config_change import change

    say("set", f"{change(key, values)}")


@config.command()
def unset(key: Key) -> None:
    """Remove a setting from config.toml, or all that pairs.TARGET says.

    \b
    Example:
      specli config unset temp
    """
    from specli.cli.config_change import remove

    say("unset", f"{remove(key)}")


@config.command()
def path() -> None:
    """Print where config.toml lies, whether it exists or not.

    \b
    Example:
      cp "$(specli config path)" backup.toml
    """
    from specli.config import config_file

    write(f"{config_file()}\n")


@config.command()
def edit() -> None:
    """Open config.toml in $VISUAL or $EDITOR, and say afterwards whether it is right.

    \b
    Example:
      EDITOR=nano specli config edit
    """
    from specli.cli.config_change import check_file
    from specli.config import config_file
    from specli.files import unwritable

    file = config_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(file, error) from None
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    editor = editor or ("notepad" if sys.platform == "win32" else "vi")
    try:
        code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode
    except (OSError, ValueError) as error:
        raise UsageError(f"{editor}: cannot be started: {error}", "set EDITOR to yours") from None
    if code != 0:
        raise SpecliError(f"{editor} ended with {code}")
    check_file()
