"""A database in which no master key was ever used, for each test."""

import asyncpg
import pytest


async def as_owner(url: str, statement: str) -> None:
    owner = await asyncpg.connect(url.replace("+asyncpg", ""))
    await owner.execute(statement)
    await owner.close()


async def as_new(url: str) -> None:
    await as_owner(url, "TRUNCATE master_keys, user_keys, installation_keys, erasures CASCADE")


@pytest.fixture
async def url(database_url: str) -> str:
    await as_new(database_url)
    return database_url
