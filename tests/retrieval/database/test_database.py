"""What Postgres does to a transaction is told as one of casebank's errors."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from app.postgres.pools import service_database
from retrieval.database.database import Database
from retrieval.errors import DatabaseUnavailable, Deadlocked

LOCK = text("SELECT pg_advisory_xact_lock(:key)")


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with service_database(database_url) as database:
        yield database


async def test_of_two_transactions_that_wait_for_each_other_one_is_told_to_try_again(database: Database):
    both_hold_one = asyncio.Barrier(2)

    async def locked(first: int, second: int) -> None:
        async with database.as_user("alice", datetime.now(UTC)) as connection:
            await connection.execute(LOCK, {"key": first})
            await both_hold_one.wait()
            await connection.execute(LOCK, {"key": second})

    ended = await asyncio.gather(locked(1, 2), locked(2, 1), return_exceptions=True)
    (error,) = [each for each in ended if each is not None]
    assert isinstance(error, Deadlocked)
    assert isinstance(error, DatabaseUnavailable)  # which every caller takes for a reason to try again later
