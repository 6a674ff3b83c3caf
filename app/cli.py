"""The command line: every command that a person or cron runs, each imported when it is called."""

import gc
import tomllib
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from app import __version__
from app.wrong_settings import WrongSettings


class PlainGroup(TyperGroup):
    """The group of all commands; it reports wrong settings and errors of the system in lines."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command that was named."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader went away: click ends the command in silence
            raise
        except (WrongSettings, OSError) as error:  # imported here: the list of all commands is quicker without it
            imported("app.terminal.run_to_end").refuse(error)


def imported(module: str) -> Any:
    """Imports a module with the garbage collector off, which would take about a tenth of a start, and returns it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return import_module(module)
    finally:
        if was_on:
            gc.enable()


@dataclass(frozen=True, slots=True)
class ListedCommand:
    """A command: the module and name of its function or group, and its line in the list of all."""

    module: str
    name: str
    line: str


_READ = tomllib.loads(files("app.commands").joinpath("commands.toml").read_text(encoding="utf-8"))
COMMANDS = {name: ListedCommand(**command) for name, command in _READ.items()}


class Elsewhere(TyperCommand):
    """A command whose body is imported when it is called; until then it is a name and a line."""

    def make_context(self, *given: Any, **more: Any) -> Any:
        """Returns the context of the command's body, which parses the arguments."""
        return body_of(self.name or "").make_context(*given, **more)


def body_of(name: str) -> Any:
    """Imports a command's module and returns the command, or the group of commands, as click calls it."""
    command = COMMANDS[name]
    body = getattr(imported(command.module), command.name)
    if not isinstance(body, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(body)
        body = alone
    return get_command(body)


def print_version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    """Prints the version and ends the program, if ``--version`` was given."""
    if wanted:
        typer.echo(f"casebank {__version__}")
        raise typer.Exit


cli = typer.Typer(
    name="casebank",
    cls=PlainGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def read_file(file: Path | None) -> None:
    """Sets the variables of a file of settings for the command, unless the environment sets them already.

    Raises:
        typer.BadParameter: the file cannot be read, or a line sets a variable that cannot be.
    """
    if file is None:
        return
    try:
        imported("app.terminal.which_database").read_environment(file)
    except (OSError, ValueError):  # without its text, which may be a secret
        raise typer.BadParameter(f"{file} is no file of NAME=value lines in UTF-8") from None


@cli.callback()
def main(
    *,
    env_file: Annotated[
        Path | None,
        typer.Option(
            "--env-file",
            envvar="CASEBANK_ENV_FILE",
            exists=True,
            dir_okay=False,
            callback=read_file,
            help="File of NAME=value lines, DATABASE_URL among them; variables of the environment count more.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Memory for agents that learns which memories help."""
    del env_file, version  # their callbacks did what they ask for


for _name, _command in COMMANDS.items():
    cli.command(_name, cls=Elsewhere, help=_command.line)(lambda: None)  # never called: the body is, in its place


if __name__ == "__main__":
    cli()
