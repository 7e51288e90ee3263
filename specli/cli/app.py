"""The command `specli`: its subcommands, and the one place where errors end."""

import errno
import os
import sys
from typing import Annotated, Any

import typer

from specli import __version__
from specli.cli.bench import bench
from specli.cli.chat import chat
from specli.cli.chats import chats
from specli.cli.config import config
from specli.cli.derive import derive
from specli.cli.doctor import doctor
from specli.cli.models import models
from specli.cli.pull import pull
from specli.cli.run import run
from specli.cli.streams import ReaderGone, drop_stdout, keep_streams, say, say_error, why_not
from specli.cli.trace import trace
from specli.cli.variables import Specli, said_of
from specli.cli.verify import verify
from specli.errors import Interrupted, SpecliError
from specli.text import shortened

_LONGEST = 300  # characters of an error that repeats what was typed

app = typer.Typer(
    name="specli",
    cls=Specli,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.command()(chat)
app.command()(trace)
app.command()(verify)
app.command()(derive)
app.command()(doctor)
app.command()(pull)
app.add_typer(chats, name="chats")
app.add_typer(bench, name="bench")
app.add_typer(models, name="models")
app.add_typer(config, name="config")

# typer raises its own copy of click's exceptions and exports only the most special ones.
ClickException: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"specli {__version__}")
        raise typer.Exit


@app.callback()
def specli(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Speculative decoding for local GGUF models: the target's own text, sooner.

    Example: specli run "Why is the sky blue?"
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run the command line and exit with its code."""
    keep_streams()
    code = _run()
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        drop_stdout()
        if not code and not isinstance(error, BrokenPipeError):
            say("error", f"stdout cannot be written: {why_not(error)}")
            code = 1
    sys.exit(code)


def _run() -> int:
    try:
        result = app(prog_name="specli", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except (KeyboardInterrupt, Interrupted):
        return Interrupted.exit_code
    except SpecliError as error:
        if os.environ.get("SPECLI_DEBUG") == "1":
            raise
        say_error(error)
        return error.exit_code
    except typer.Exit as done:
        return done.exit_code
    except ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error, file=sys.stderr)
            return 2
        say("error", shortened(said_of(error), _LONGEST))
        say("hint", _hint(error))
        return 2
    except ReaderGone:
        drop_stdout()
        return 0
    except OSError as error:
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        if error.errno == errno.EBADF:  # what click prints does not go through `write`
            where = "stdout cannot be written: "
        say("error", f"{where}{why_not(error)}")
        return 1
    except Exception as error:
        if os.environ.get("SPECLI_DEBUG") == "1":
            raise
        say("error", f"{type(error).__name__}: {error}")
        say("hint", "this is a bug in specli; SPECLI_DEBUG=1 shows where")
        return 1


def _hint(error: Any) -> str:
    """Return what to do where click refuses a command line."""
    command = error.ctx.command if getattr(error, "ctx", None) else None
    takes_prompt = command and any(option.name == "prompt" for option in command.params)
    if takes_prompt and "extra argument" in error.format_message():
        return 'a prompt of several words wants quotation marks: "why is the sky blue?"'
    return "--help shows the options of a command, with an example"
