"""The command line: every command that a person or cron runs, each imported when it is called."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from app import __version__
from app.terminal.imported import imported
from app.terminal.plain_commands import PlainGroup


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the module and name of its function or group, and its line in the list of all."""

    module: str
    name: str
    line: str


COMMANDS = {
    "serve": Command(
        "app.commands.serve",
        "serve",
        "Run the service with a worker and, unless DATABASE_URL is set, an embedded Postgres.",
    ),
    "console": Command(
        "app.commands.console",
        "console",
        "Print a link that signs in to the console, once and within two minutes, and open it in a browser.",
    ),
    "worker": Command(
        "app.commands.worker",
        "worker",
        "Run a worker in a process of its own, beside or in place of the service's worker.",
    ),
    "migrate": Command("app.commands.migrate", "migrate", "Migrate the database's schema to a revision."),
    "prune": Command(
        "app.commands.upkeep",
        "prune",
        "Remove cases and other rows over the limits of each profile, and index the vectors of very large banks.",
    ),
    "purge": Command("app.commands.erase", "purge", "Erase all data of a user for good and print the receipt."),
    "rotate-key": Command(
        "app.commands.rotate_key",
        "rotate_key",
        "Wrap every user's key with CASEBANK_MASTER_KEY in place of CASEBANK_MASTER_KEY_OLD; may be repeated.",
    ),
    "backup": Command(
        "app.commands.backups",
        "backup",
        "Back up the embedded database into a folder, without the master key; the service may run meanwhile.",
    ),
    "restore": Command(
        "app.commands.backups",
        "restore",
        "Restore a backup and erase again the users who were erased since; the service must not run.",
    ),
    "erase-again": Command(
        "app.commands.erase",
        "again",
        "Erase users whom a restored database brought back; `restore` does it by itself.",
    ),
    "export": Command(
        "app.commands.rows", "export", "Export all data of a user to standard output, one JSON object a line."
    ),
    "train": Command(
        "app.commands.train",
        "commands",
        "Train policies from the logs, judge those on trial and watch those that serve (--help for more).",
    ),
    "backfill": Command(
        "app.commands.rows",
        "backfill",
        "Retain old runs from a file; a repeat adds only what is missing.",
    ),
    "reembed": Command(
        "app.commands.upkeep",
        "reembed",
        "Embed every bank again with the embedder of the settings; each bank switches when its vectors are complete.",
    ),
    "reseal": Command(
        "app.commands.upkeep",
        "reseal",
        "Rewrite earlier rows as CASEBANK_SEAL says: texts sealed with the users' keys, or in plain.",
    ),
    "requeue": Command(
        "app.commands.upkeep",
        "requeue",
        "Queue dead cases, sessions and reflections, and memories without a vector, again.",
    ),
    "doctor": Command(
        "app.commands.doctor",
        "doctor",
        "Check this machine, the settings and the database; exit with status 1 if a check fails.",
    ),
    "demo": Command(
        "app.commands.demo",
        "demo",
        "Run a scripted database operator with no memory, keyword memory and casebank, and compare them.",
    ),
    "policy": Command(
        "app.commands.policy",
        "commands",
        "Show a profile's policies, take the serving one out of service, or compare orders over all profiles.",
    ),
    "audit": Command(
        "app.commands.audit", "commands", "Verify that the audit was not changed, or delete its old entries."
    ),
    "token": Command(
        "app.commands.tokens", "commands", "Print a bearer token, revoke tokens, or replace the secret that signs them."
    ),
    "knowledge": Command(
        "app.commands.knowledge",
        "commands",
        "Import, list, edit or delete knowledge: what an agent should know of its domain.",
    ),
    "mcp": Command(
        "app.mcp.command",
        "speak_mcp",
        "Serve the memory tools by the Model Context Protocol on standard input and output; needs the extra `mcp`.",
    ),
    "impact": Command(
        "app.commands.impact",
        "show_impact",
        "Report whether memory helped: rewards with memory beside those with none and with other policies.",
    ),
}
"""Commands in the order of the list. The lines stand here because ``casebank --help`` should import no command."""


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
    """Sets the variables of a file of settings for the command, unless the environment sets them already."""
    if file is not None:
        imported("app.terminal.which_database").read_environment(file)


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
