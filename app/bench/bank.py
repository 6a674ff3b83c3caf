"""A bank for one benchmark: an embedded Postgres, a filled database, and both ways in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import asyncpg

from app import postgres
from app.bench.fill import fill
from app.db import service_database
from app.migrate import migrate
from app.providers.wordllama import WordLlamaEmbedder
from app.settings import Settings
from retrieval.retrieve import Reader

WARM_UP = 50


@dataclass(frozen=True, slots=True)
class Bank:
    """A filled bank: read as the service reads it, and by bare asyncpg as the same role."""

    url: str
    reader: Reader
    bare: asyncpg.Connection
    users: int
    now: datetime


@asynccontextmanager
async def filled(home: Path, users: int) -> AsyncIterator[Bank]:
    """Yields a bank of ``users`` profiles with 200 cases each."""
    url = await empty(home, f"bench_{users}")
    await fill(url, users)
    bare = await asyncpg.connect(url.replace("+asyncpg", ""), server_settings={"jit": "off"})
    try:
        async with service_database(url) as database:
            yield Bank(url, Reader(database, WordLlamaEmbedder(), explore=True), bare, users, datetime.now(UTC))
    finally:
        await bare.close()


def settings_of(home: Path, url: str) -> Settings:
    """Returns the settings of a service on the database."""
    return Settings(home=home / "service", database_url=url)


async def empty(home: Path, name: str) -> str:
    """Returns the URL of a migrated database of that name, without a case in it."""
    server = postgres.start(home)
    admin = await asyncpg.connect(server.url("postgres").replace("+asyncpg", ""))
    await admin.execute(f"CREATE DATABASE {name}")
    await admin.close()
    url = server.url(name)
    await migrate(url)
    return url
