"""A service in a process of its own: started as `casebank serve` would be, and stopped at the end."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx

from app.auth.tokens import ACT_AS, issue_token
from app.processes.own_module import OWN_MODULE
from app.settings import Settings

START_TIMEOUT_S = 120.0
TOKEN_VALID_FOR = timedelta(days=1)
BACKEND = "casebank-backend"
"""Actor of changes that a service of our own makes on behalf of users."""


class ServiceDidNotStart(OSError):
    """The service ended, or was not ready in time."""


@dataclass(frozen=True, slots=True)
class OwnService:
    """A running service: its settings, address and process id."""

    settings: Settings
    base_url: str
    pid: int

    def token(self, user: str, scope: str = "") -> str:
        """Returns a token of the user, or of a service with that scope; valid for a day."""
        return issue_token(
            self.settings.signing_secret,
            user=user,
            issuer=self.settings.jwt_issuer,
            audience=self.settings.jwt_audience,
            ttl=TOKEN_VALID_FOR,
            now=datetime.now(UTC),
            scope=scope,
        )

    def headers(self, user: str) -> dict[str, str]:
        """Returns the headers of a backend that acts for the user, and may send rewards of a metric."""
        return {"Authorization": f"Bearer {self.token(BACKEND, ACT_AS)}", "X-Casebank-User": user}

    def client(self, user: str) -> httpx.AsyncClient:
        """Returns an HTTP client that calls the service as a backend that acts for the user."""
        return httpx.AsyncClient(base_url=self.base_url, headers=self.headers(user), timeout=30)


@asynccontextmanager
async def own_service(settings: Settings, processes: int = 1) -> AsyncIterator[OwnService]:
    """Yields a ready service with these settings, in so many processes, which end with the block.

    Raises:
        ServiceDidNotStart: the service ended, or was not ready in time.
    """
    port = free_port()
    command = (*OWN_MODULE, "app.cli", "serve", "--port", str(port), "--processes", str(processes))
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, env=settings.as_environment(), stderr=quiet)
    try:
        service = OwnService(settings, f"http://127.0.0.1:{port}", process.pid)
        await _ready(service.base_url, process)
        yield service
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def free_port() -> int:
    """Returns a free port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


async def _ready(base_url: str, process: asyncio.subprocess.Process) -> None:
    try:
        async with httpx.AsyncClient(base_url=base_url) as client, asyncio.timeout(START_TIMEOUT_S):
            while process.returncode is None:
                with suppress(httpx.TransportError):
                    if (await client.get("/readyz")).is_success:
                        return
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise ServiceDidNotStart(f"the service was not ready in {START_TIMEOUT_S:.0f} s") from None
    raise ServiceDidNotStart("the service ended while it started; `casebank serve` shows why")
