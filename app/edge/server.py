"""The HTTP server: uvicorn around the service, with bounds on its connections."""

import socket

import uvicorn
from fastapi import FastAPI

from app.edge.intake.connections import bounded
from app.edge.open_files import OTHER_FILES, allow_files
from app.settings import Settings


def check_free(host: str, port: int) -> None:
    """Raises OSError if the port is taken, before everything else is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.create_server((host, port), family=family).close()


def run_server(app: FastAPI, host: str, port: int) -> None:
    """Serves until the process receives a signal to end."""
    settings: Settings = app.state.settings
    allow_files(settings.connections.total + OTHER_FILES)
    uvicorn.run(
        app,
        host=host,
        port=port,
        http=bounded(settings),
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=settings.timeouts_s.stop,
    )
