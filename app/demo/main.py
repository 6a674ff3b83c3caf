"""Runs the demo against a service of its own: started as `casebank serve` would be, stopped at the end."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from rich.console import Console

from app.auth import issue_token
from app.demo.learning import Learner, show_learning
from app.demo.report import Arm, DemoReport
from app.demo.run import AGENT, run_demo, run_with_memory
from app.runtime import owner_url
from app.settings import Settings

START_TIMEOUT_S = 120.0


class ServiceDidNotStart(OSError):
    """The service ended, or did not become ready in time."""


async def demo(settings: Settings, *, tasks: int, seed: int, out_dir: Path) -> DemoReport:
    """Runs the stream without and with memory, prints the report, and says where to look next.

    Each run remembers under a user of its own, so that it begins with an empty bank.
    """
    console = Console()
    user = f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    token = issue_token(
        settings.signing_secret,
        user=user,
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        ttl=timedelta(days=1),
        now=datetime.now(UTC),
    )
    async with owner_url(settings) as scratch_dsn, own_service() as base_url:
        report = await run_demo(base_url, token, scratch_dsn, seed=seed, tasks=tasks, out_dir=out_dir, console=console)

        async def again(name: str, other_seed: int) -> Arm:
            return await run_with_memory(
                base_url, token, scratch_dsn, name=name, seed=other_seed, tasks=tasks, console=console
            )

        await show_learning(Learner(settings, user, AGENT, out_dir), again, seed, console)
    console.print(
        "\nWhere to look next:\n"
        "  make serve                            keep the service running; the API is at http://127.0.0.1:8700/docs\n"
        f"  .venv/bin/casebank token --user {user}   a token that sees what this demo remembered\n"
        f"  .venv/bin/casebank export --user {user}  all of it, as JSON lines\n"
        f"  .venv/bin/casebank policy show --user {user} --agent {AGENT}   what was learned, and the verdict\n"
        f"  .venv/bin/casebank purge --user {user}   and gone again, with a receipt",
        markup=False,
        highlight=False,
    )
    return report


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
