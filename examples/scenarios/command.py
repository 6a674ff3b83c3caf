"""``python -m examples.scenarios NAME``: tells one story. Exit status 1: a promise is broken; 77: it was skipped."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import httpx
import typer
from casebank_client.errors import ClientError

from app import logs
from app.processes.own_service import own_service
from app.settings import Settings
from app.terminal.run_to_end import run_to_end
from examples.scenarios import chat_backend, experiment, health_coach, n8n, typescript_executor
from examples.scenarios.place import NotHere, Place, PromiseBroken

STORIES: dict[str, Callable[[Place], None]] = {
    "n8n": n8n.story,
    "experiment": experiment.story,
    "chat-backend": chat_backend.story,
    "health-coach": health_coach.story,
    "typescript-executor": typescript_executor.story,
}
USERS = ("ann", "ben")
"""Users of a service of our own; `chat-backend` is about two of them."""
SKIPPED = 77
"""Exit status of a scenario whose program is missing, as test harnesses have it."""


def scenario(
    name: Annotated[str, typer.Argument(help=f"one of {', '.join(STORIES)}")],
    url: Annotated[str, typer.Option(help="address of a running casebank; without it one is started")] = "",
    token: Annotated[list[str] | None, typer.Option(help="token of a user; twice, of two users")] = None,
) -> None:
    """Tell one story, promise by promise."""
    logs.quiet()
    if name not in STORIES:
        raise typer.BadParameter(f"no scenario {name!r}; there are {', '.join(STORIES)}")
    if bool(url) != bool(token):
        raise typer.BadParameter("--url and --token go together")
    try:
        if url:
            STORIES[name](Place(url, tuple(token or ())))
        else:
            run_to_end(_on_a_service_of_its_own(STORIES[name]))
    except NotHere as error:
        typer.echo(f"  skipped: {error}", err=True)
        raise typer.Exit(SKIPPED) from error
    except (PromiseBroken, httpx.HTTPError, ClientError) as error:
        typer.echo(f"  broken: {error}", err=True)
        raise typer.Exit(1) from error


async def _on_a_service_of_its_own(story: Callable[[Place], None]) -> None:
    with tempfile.TemporaryDirectory(prefix="casebank-scenario-", ignore_cleanup_errors=True) as folder:
        settings = Settings(home=Path(folder) / "home", database_url=None, explore=False)
        async with own_service(settings) as service:
            place = Place(service.base_url, tuple(service.token(user) for user in USERS))
            await asyncio.to_thread(story, place)
