"""Results and subjects of the checks: the database, under its owner and under the service's role, and the embedder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.postgres.pools import engine_of, service_database
from app.runtime import make_embedder, owner_url
from app.settings import Settings
from retrieval.database.database import Database
from retrieval.ports import Embedder


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check; ``ok`` is None if the check does not apply."""

    ok: bool | None
    detail: str
    advice: str = ""


def in_brief(error: Exception) -> str:
    """Returns an error's type and the first line of its message, at most 200 characters."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


@dataclass(frozen=True, slots=True)
class Installation:
    """Parts of an installation that the checks need."""

    settings: Settings
    owner: AsyncEngine
    database: Database
    embedder: Embedder


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Installation]:
    """Yields the installation of these settings; starts the embedded Postgres if it is the database."""
    async with owner_url(settings) as url:
        timeout_s = settings.timeouts_s.database
        owner = engine_of(url, connect_args={"timeout": timeout_s, "command_timeout": timeout_s})
        embedder = make_embedder(settings)
        try:
            async with owner.connect() as connection:
                await connection.execute(text("SELECT 1"))
            async with service_database(url, pool_size=1, timeout_s=timeout_s) as database:
                yield Installation(settings, owner, database, embedder)
        finally:
            await embedder.aclose()
            await owner.dispose()
