"""A service in a process of its own, for benchmarks that cross HTTP."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from app.auth import issue_token

SECRET = "a secret for benchmarks, and for nothing else"  # noqa: S105 - guards a bank that is thrown away


@dataclass(frozen=True, slots=True)
class Running:
    """Where the service is and which process it is."""

    base_url: str
    pid: int

    def headers(self, user: str) -> dict[str, str]:
        """Returns the request headers of a user."""
        token = issue_token(
            SECRET,
            user=user,
            issuer="casebank",
            audience="casebank",
            ttl=timedelta(hours=1),
            now=datetime.now(UTC),
        )
        return {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def service(home: Path, url: str) -> AsyncIterator[Running]:
    """Yields a running service on the database; it ends with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "CASEBANK_HOME": str(home / "service"),
        "CASEBANK_JWT_SECRET": SECRET,
        "DATABASE_URL": url.replace("+asyncpg", ""),
    }
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port)]
    process = await asyncio.create_subprocess_exec(*command, env=environment, stderr=asyncio.subprocess.DEVNULL)
    try:
        running = Running(f"http://127.0.0.1:{port}", process.pid)
        await _ready(running.base_url)
        yield running
    finally:
        process.terminate()
        await process.wait()


async def _ready(base_url: str) -> None:
    async with httpx.AsyncClient(base_url=base_url) as client, asyncio.timeout(60):
        while True:
            try:
                if (await client.get("/readyz")).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)
