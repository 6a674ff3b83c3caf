"""The HTTP server: uvicorn around the service, with bounds on its connections, in one process or in several."""

import os
import socket
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from fastapi import FastAPI

from app.edge.intake.connections import bounded
from app.edge.open_files import OTHER_FILES, allow_files
from app.settings import Settings

IDLE_S = 15
"""Seconds until an idle connection is closed; clients keep theirs for less, as httpx for 5: else a request on its way
could meet the end of its connection."""
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder in which prometheus_client shares the counts of several processes."""


def check_free(host: str, port: int) -> None:
    """Raises OSError if the port is taken, before everything else is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.create_server((host, port), family=family).close()


def run_server(app: FastAPI, host: str, port: int) -> None:
    """Serves until the process receives a signal to end."""
    settings: Settings = app.state.settings
    allow_files(settings.connections.total + OTHER_FILES)
    uvicorn.run(app, host=host, port=port, **options(settings))


def run_servers(make_app: str, settings: Settings, host: str, port: int, processes: int) -> None:
    """Serves in several processes that share one socket, until this process receives a signal to end.

    A process that dies is replaced, unless it could not start.

    Args:
        make_app: the function that returns the service in each process, as "module:name".
        settings: the settings, which each process reads again.
        host: address to listen on.
        port: port to listen on.
        processes: number of processes.
    """
    allow_files(settings.connections.total + OTHER_FILES)  # the processes inherit the limit
    with TemporaryDirectory(prefix="casebank-metrics-") as folder:
        os.environ[METRICS_FOLDER] = folder
        uvicorn.run(make_app, factory=True, workers=processes, host=host, port=port, **options(settings))


def options(settings: Settings) -> dict[str, Any]:
    """Returns the options of uvicorn for one process or several."""
    return {
        "http": bounded(settings),
        "ws": "none",
        "log_config": None,
        "access_log": False,
        "timeout_keep_alive": IDLE_S,
        "timeout_graceful_shutdown": settings.timeouts_s.stop,
    }
