"""Parts that the commands share: common options, and the running parts of a process."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from app import logs
from app.auth.tokens import is_user
from app.runtime import Runtime, running
from app.settings import Settings
from app.terminal.plain_console import notice
from app.terminal.which_database import tell_database
from writer.run import AgentKey

PATIENCE_S, EMBEDDER_PATIENCE_S = 600.0, 30.0
"""Seconds that a command waits: for one answer of the database or for its vectors in all; for one request for them."""


def named(user: str | None) -> str | None:
    """Returns the name; ``-``: reads it from standard input, where no list of processes shows it."""
    return sys.stdin.readline().rstrip("\r\n") if user == "-" else user


USER_HELP = "user who owns the memory (the token's subject); -: read the name from standard input"
User = Annotated[str, typer.Option("--user", callback=named, help=USER_HELP)]
MaybeUser = Annotated[str | None, typer.Option("--user", callback=named, help=USER_HELP)]


def agent_named(agent: str) -> str:
    """Returns the name; raises BadParameter if it is no valid name of an agent."""
    try:
        return TypeAdapter(AgentKey).validate_python(agent)
    except ValidationError:
        raise typer.BadParameter("an agent is 1 to 200 printable characters") from None


Agent = Annotated[str, typer.Option("--agent", callback=agent_named, help="assistant of that user")]


def checked(user: str) -> str:
    """Returns the name; raises BadParameter if it is no valid name of a user."""
    if not is_user(user):
        raise typer.BadParameter("name a user, in 1 to 255 printable characters", param_hint="--user")
    return user


@asynccontextmanager
async def parts(*, only_reads: bool = False) -> AsyncIterator[Runtime]:
    """Yields the running parts, with the timeouts of a command; one that writes says first which database it uses."""
    logs.quiet()
    settings = patient()
    if not only_reads:
        tell_database(settings)
    async with running(settings) as runtime:
        yield runtime
        if not only_reads:
            await runtime.worker.wakes.notify()  # there may be work now


def doubt_name(lacks: str = "rows") -> None:
    """Warns that the user's name may be misspelt, because the bank has no such thing of the user."""
    notice(f"this user has no {lacks}: is the name right?", style="yellow")


def warn_of_unknown_variables() -> None:
    """Prints a line on standard error for each ``CASEBANK_…`` variable that is no setting."""
    for line in Settings.unknown_variables():
        notice(line)


def patient() -> Settings:
    """Returns the settings with longer timeouts: a command does much at once, and no caller waits for it."""
    settings = Settings()
    usual = settings.timeouts_s
    longer = {
        "database": max(PATIENCE_S, usual.database),
        "embedder_request": max(EMBEDDER_PATIENCE_S, usual.embedder_request),
        "embedder": max(PATIENCE_S, usual.embedder),
    }
    return settings.model_copy(update={"timeouts_s": usual.model_copy(update=longer)})
