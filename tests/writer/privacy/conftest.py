"""A database in which no master key was ever used, for each test, and processes that start on it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import pytest

from app.postgres.pools import dsn, service_database
from retrieval.database.database import Database
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeys, agree
from writer.privacy.words import Words


async def as_owner(url: str, statement: str) -> None:
    owner = await asyncpg.connect(dsn(url))
    await owner.execute(statement)
    await owner.close()


async def as_new(url: str) -> None:
    await as_owner(url, "TRUNCATE master_keys, user_keys, installation_keys, erasures CASCADE")


@pytest.fixture
async def url(database_url: str) -> str:
    await as_new(database_url)
    return database_url


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    async with service_database(url) as database:
        yield database


async def start(database: Database, *held: bytes) -> None:
    """What every process does when it starts."""
    async with database.as_worker() as connection:
        await agree(connection, MasterKeys.of(*held))


async def key_of(database: Database, user: str, *held: bytes) -> Words:
    async with database.as_user(user, datetime.now(UTC)) as connection:
        return await Keyring(held[0], held[1:]).find_or_make(connection, user)
