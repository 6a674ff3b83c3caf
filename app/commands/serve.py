"""``casebank serve``: runs the service."""

import os
import signal
from multiprocessing import parent_process
from threading import Thread
from typing import Annotated

import typer
from fastapi import FastAPI

from app import logs
from app.edge.server import check_free, run_server, run_servers
from app.main import create_app
from app.settings import Settings
from app.terminal.command_line import warn_of_unknown_variables
from app.terminal.plain_console import notice, plain_console
from app.terminal.which_database import database_of


def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="port to listen on")] = 8700,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    processes: Annotated[int, typer.Option(min=1, max=64, help="processes that share the port, one a core")] = 1,
) -> None:
    """Run the service with a worker and, unless DATABASE_URL is set, an embedded Postgres."""
    try:
        check_free(host, port)
    except OSError as error:
        why = str(error.strerror).partition(" (")[0]  # Python adds the address
        notice(f"cannot listen on {host}:{port}: {why}; --port and --host take others", style="red")
        raise typer.Exit(1) from None
    settings = Settings()
    warn_of_unknown_variables()
    logs.as_json(settings.log_level)
    if settings.database_url is None:
        settings.make_home()
    app = create_app(settings)  # makes the secrets, too, before several processes would
    where = f"http://{host}:{port} (API at /docs, console at /console)"
    welcome = f"casebank on {where}, state in {settings.home}, database: {database_of(settings)}"
    plain_console(stderr=True, soft_wrap=True).print(welcome)
    if processes == 1:
        run_server(app, host, port)
    else:
        run_servers("app.commands.serve:app_of_process", settings, host, port, processes)


def app_of_process() -> FastAPI:
    """Returns the service for one of several processes, with settings from the environment."""
    Thread(target=_end_with_parent, daemon=True).start()
    settings = Settings()
    logs.as_json(settings.log_level)
    return create_app(settings)


def _end_with_parent() -> None:
    """Ends this process in order when its parent has died, which otherwise tells it to."""
    if (parent := parent_process()) is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
