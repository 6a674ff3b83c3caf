"""The connections: two pools with no rights but the service's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from sqlalchemy.ext.asyncio import create_async_engine

from retrieval.database.database import Database

SERVICE_ROLE = "casebank_service"
WORKER_ROLE = "casebank_worker"


@asynccontextmanager
async def service_database(url: str, *, pool_size: int = 10, timeout_s: float = 10.0) -> AsyncIterator[Database]:
    """Yields the bank, reached as the plain service role, whoever the URL logs in as.

    Up to ``pool_size`` connections for transactions and as many for fast statements are opened as they are
    needed, none before; ``timeout_s`` limits every wait: for a connection, and for the answer to a statement.
    """
    options: dict[str, Any] = {
        "command_timeout": timeout_s,
        "timeout": timeout_s,
        "server_settings": {"role": SERVICE_ROLE, "application_name": "casebank", "jit": "off"},
    }
    engine = create_async_engine(
        asyncpg_url(url),
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=False,  # a broken connection is reported as such; the pool drops it and the client tries again
        pool_timeout=timeout_s,
        connect_args=options,
    )
    dsn = asyncpg_url(url).replace("+asyncpg", "", 1)
    pool = asyncpg.create_pool(dsn, min_size=0, max_size=pool_size, reset=_as_it_is, **options)
    try:
        async with pool:
            yield Database(engine, pool)
    finally:
        await engine.dispose()


async def _as_it_is(_connection: asyncpg.Connection) -> None:
    """Spares a fast connection the round trip that would reset its session: its statements leave nothing behind."""


def asyncpg_url(url: str) -> str:
    """Returns the URL with the asyncpg driver named; ``postgresql://`` alone would mean psycopg."""
    scheme, _, rest = url.partition("://")
    if scheme not in {"postgresql", "postgres", "postgresql+asyncpg"}:
        raise ValueError("DATABASE_URL must begin with postgresql://")
    return f"postgresql+asyncpg://{rest}"
