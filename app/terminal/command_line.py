"""What the commands share: whom they are about, and the parts that they run with."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import typer
from rich.console import Console

from app import logs
from app.auth.tokens import is_user
from app.runtime import Runtime, running
from app.settings import Settings

PATIENCE_S, EMBEDDER_PATIENCE_S = 600.0, 30.0
"""How long a command waits for one answer of the database or for its vectors in all, and for one request for them."""

CENTURY_DAYS = 36_525
"""The longest time that a command takes: what a date can be has an end."""


def named(user: str | None) -> str | None:
    """Returns the name, from standard input where it is ``-``: there it shows in no list of processes."""
    return sys.stdin.readline().rstrip("\r\n") if user == "-" else user


WHOSE = "whose memory (the token's subject); -: read from standard input"
User = Annotated[str, typer.Option("--user", callback=named, help=WHOSE)]
MaybeUser = Annotated[str | None, typer.Option("--user", callback=named, help=WHOSE)]
Agent = Annotated[str, typer.Option("--agent", help="which assistant")]


def checked(user: str) -> str:
    """Returns the name, if a user may be called so."""
    if not is_user(user):
        raise typer.BadParameter("a user is 1 to 255 printable characters", param_hint="--user")
    return user


@asynccontextmanager
async def parts() -> AsyncIterator[Runtime]:
    """Yields the parts for a command, which may take its time: nobody waits for it as a caller of the service does."""
    logs.quiet()
    async with running(patient()) as runtime:
        yield runtime


def warn_of_unknown_variables() -> None:
    """Prints a line on standard error for each ``CASEBANK_…`` variable that is no setting."""
    for line in Settings.unknown_variables():
        Console(stderr=True, soft_wrap=True).print(f"casebank: {line}", markup=False, highlight=False)


def patient() -> Settings:
    """Returns the settings of a command, which may take its time."""
    settings = Settings()
    usual = settings.timeouts_s
    longer = {
        "database": max(PATIENCE_S, usual.database),
        "embedder_request": max(EMBEDDER_PATIENCE_S, usual.embedder_request),
        "embedder": max(PATIENCE_S, usual.embedder),
    }
    return settings.model_copy(update={"timeouts_s": usual.model_copy(update=longer)})
