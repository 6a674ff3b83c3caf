"""The front door: every command that a person or cron runs, each imported when it is called."""

from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from app.terminal.imported import imported
from app.terminal.plain_commands import PlainGroup


@dataclass(frozen=True, slots=True)
class Command:
    """A command: where its function or its group of commands is, and the line about it in the list of all."""

    module: str
    name: str
    line: str


COMMANDS = {
    "mcp": Command(
        "app.mcp.command",
        "speak_mcp",
        "Answer the Model Context Protocol on standard input and output, for one user; needs the extra `mcp`.",
    ),
    "impact": Command(
        "app.commands.impact",
        "show_impact",
        "Say what memory changed: what was served beside an empty slate, the default and the last policy, by the log.",
    ),
    "fleet": Command(
        "app.commands.fleet",
        "show_fleets",
        "Show what the users of each agent learned together, who gives to it, and how far its trial is.",
    ),
    "serve": Command(
        "app.commands.serve",
        "serve",
        "Run the service, with its worker and, unless DATABASE_URL is set, its own Postgres.",
    ),
    "console": Command(
        "app.commands.console",
        "console",
        "Print a link that signs in to the console once, within two minutes, and open it in a browser.",
    ),
    "worker": Command(
        "app.commands.worker",
        "worker",
        "Run a worker alone, beside a service or in place of its own.",
    ),
    "migrate": Command("app.commands.migrate", "migrate", "Bring the database's schema to a revision."),
    "prune": Command(
        "app.commands.upkeep",
        "prune",
        "Take out of every bank what its window, time limit and worth leave no room for; index what is very large.",
    ),
    "purge": Command("app.commands.erase", "purge", "Erase everything of a user, for good, and print the receipt."),
    "rotate-key": Command(
        "app.commands.rotate_key",
        "rotate_key",
        "Wrap every user's key by CASEBANK_MASTER_KEY, beside CASEBANK_MASTER_KEY_OLD; may be broken off and repeated.",
    ),
    "backup": Command(
        "app.commands.backups",
        "backup",
        "Write the embedded database into a folder, while the service may go on; the master key is not in it.",
    ),
    "restore": Command(
        "app.commands.backups",
        "restore",
        "Put a backup in the place of the bank, less everybody who was erased since; the service must not run.",
    ),
    "erase-again": Command(
        "app.commands.erase",
        "again",
        "Erase again whom a restored database knows of though they were erased; `restore` does so by itself.",
    ),
    "export": Command(
        "app.commands.rows", "export", "Write everything of a user to standard output, one JSON object a line."
    ),
    "train": Command(
        "app.commands.train",
        "commands",
        "Train candidate policies from the logs, judge those on trial, watch over those that serve (--help for more).",
    ),
    "backfill": Command(
        "app.commands.rows",
        "backfill",
        "Retain old runs from a file, or make old turns and facts findable; again, it adds only what is missing.",
    ),
    "reembed": Command(
        "app.commands.upkeep",
        "reembed",
        "Bring every bank over to the embedder in the settings; each one switches at once when it is done.",
    ),
    "reseal": Command(
        "app.commands.upkeep",
        "reseal",
        "Bring what was written before over to CASEBANK_SEAL: words sealed with the users' keys, or in plain.",
    ),
    "requeue": Command(
        "app.commands.upkeep",
        "requeue",
        "Queue the dead cases again, the sessions that could not be read, and the memories without a vector.",
    ),
    "doctor": Command(
        "app.commands.doctor",
        "doctor",
        "Check everything that a support person would ask about; exits with 1 where something is bad.",
    ),
    "demo": Command(
        "app.commands.demo",
        "demo",
        "Show what memory changes: a scripted database operator with none, with keywords, and with casebank.",
    ),
    "policy": Command("app.commands.policy", "commands", "Look at what was learned, and take it out of service."),
    "audit": Command("app.commands.audit", "commands", "Check that the audit is what was written, or shorten it."),
    "token": Command("app.commands.tokens", "commands", "Print a bearer token; revoke some; change their secret."),
    "knowledge": Command("app.commands.knowledge", "commands", "What an agent is to know of its domain."),
}
"""In the order of the list. Its lines stand here, for a list of what memory can do should not import all of it."""


class Elsewhere(TyperCommand):
    """A command that is a name and a line until it is called."""

    def make_context(self, *given: Any, **more: Any) -> Any:
        """Returns the context of the command itself, whose words are parsed by it."""
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


def _elsewhere() -> None:
    """Is never called: the command's own body is."""


cli = typer.Typer(
    name="casebank",
    cls=PlainGroup,
    help="Memory for agents that learns which memories help.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _name, _command in COMMANDS.items():
    cli.command(_name, cls=Elsewhere, help=_command.line)(_elsewhere)


if __name__ == "__main__":
    cli()
