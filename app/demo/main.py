"""Runs the demo against a service of its own: started as `casebank serve` would be, stopped at the end."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import httpx
from rich.console import Console

from app.auth import issue_token
from app.demo.learning import Learner, show_learning
from app.demo.report import DemoReport
from app.demo.run import AGENT, Place, Stream, run_demo, run_with_memory
from app.runtime import owner_url
from app.settings import Settings

START_TIMEOUT_S = 120.0


class ServiceDidNotStart(OSError):
    """The service ended, or did not become ready in time."""


class TorchMissing(OSError):
    """Learning was asked for, and torch is not installed."""


async def demo(settings: Settings, *, tasks: int, seed: int, out_dir: Path, learn: bool = False) -> DemoReport:
    """Runs the stream without and with memory, prints the report, and says where to look next.

    Each run remembers under a user of its own, so that it begins with an empty bank.

    Args:
        settings: of the service.
        tasks: length of the stream.
        seed: the same seed is the same stream.
        out_dir: where the plot and the numbers go.
        learn: whether to train on what was logged, too, and to put what was learned on trial.

    Raises:
        TorchMissing: what trains is not installed.
    """
    if learn and find_spec("torch") is None:
        raise TorchMissing("learning needs torch: `make demo-learning` installs it, or pip install 'casebank[train]'")
    console = Console()
    user = f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    async with owner_url(settings) as scratch_dsn, own_service() as base_url:
        place = Place(base_url, _token(settings, user), scratch_dsn)
        report = await run_demo(place, Stream(seed, tasks), out_dir=out_dir, console=console)
        if learn:
            learner = Learner(settings, user, AGENT, out_dir)
            await show_learning(learner, partial(run_with_memory, place, console=console), report, console)
    if not learn:
        console.print("\nIt also learns which memories help: `make demo-learning` (it installs torch) shows how.")
    console.print(_where_to_look_next(user), markup=False, highlight=False)
    return report


def _token(settings: Settings, user: str) -> str:
    return issue_token(
        settings.signing_secret,
        user=user,
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        ttl=timedelta(days=1),
        now=datetime.now(UTC),
    )


def _where_to_look_next(user: str) -> str:
    return (
        "\nWhere to look next:\n"
        "  make serve                            keep the service running; the API is at http://127.0.0.1:8700/docs\n"
        f"  .venv/bin/casebank token --user {user}   a token that sees what this demo remembered\n"
        f"  .venv/bin/casebank export --user {user}  all of it, as JSON lines\n"
        f"  .venv/bin/casebank policy show --user {user} --agent {AGENT}   what was learned, and the verdict\n"
        f"  .venv/bin/casebank purge --user {user}   deletes it all, with a receipt"
    )


@asynccontextmanager
async def own_service() -> AsyncIterator[str]:
    """Yields the base URL of a service in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603, ASYNC220 - our own program, started once
    try:
        base_url = f"http://127.0.0.1:{port}"
        await _ready(base_url, process)
        yield base_url
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


async def _ready(base_url: str, process: subprocess.Popen[bytes]) -> None:
    async with httpx.AsyncClient(base_url=base_url) as client, asyncio.timeout(START_TIMEOUT_S):
        while process.poll() is None:
            try:
                if (await client.get("/readyz")).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)
    raise ServiceDidNotStart("the service ended while it started; `casebank serve` shows why")
