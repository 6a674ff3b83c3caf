"""What Postgres does to a transaction is told as one of casebank's errors."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

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


async def unavailable(database: Database, raising: str, why: str) -> None:
    """Asserts that the database counts as unavailable where it raises an error, in either kind of transaction."""
    block = f"DO $$ BEGIN {raising}; END $$"
    with pytest.raises(DatabaseUnavailable, match=why):
        async with database.as_user("alice", datetime.now(UTC)) as connection:
            await connection.execute(text(block))
    with pytest.raises(DatabaseUnavailable, match=why):
        async with database.fast("alice", datetime.now(UTC)) as fast:
            await fast.driver.execute(block)


@pytest.mark.parametrize(
    "message",
    [
        "could not commit transaction for shard 102024 on at least one active node",
        "failure on connection marked as essential: localhost:5482",
    ],
)
async def test_a_node_of_a_cluster_that_fails_to_commit_is_a_reason_to_try_again(database: Database, message: str):
    await unavailable(database, f"RAISE EXCEPTION '{message}' USING ERRCODE = 'XX000'", "did not commit")


async def test_a_task_that_is_cancelled_while_it_sends_many_long_rows_is_cancelled_at_once(database: Database):
    """asyncpg alone would go on until the statement times out, and raise a TimeoutError."""
    sends = asyncio.Event()

    async def send() -> None:
        async with database.as_user("alice", datetime.now(UTC)) as connection:
            sends.set()
            await connection.execute(text("SELECT length(:long), pg_sleep(1)"), [{"long": "é" * 3000}] * 60)

    sending = asyncio.create_task(send())
    await sends.wait()
    await asyncio.sleep(0.5)
    sending.cancel()
    await asyncio.wait({sending})
    assert sending.cancelled()


async def test_rows_are_sent_whole_however_long_they_are(database: Database):
    rows = [{"text": "é" * size} for size in (0, 1, 200_000, 30_000, 20_000, 90_000, 5, 0)]
    async with database.as_user("alice", datetime.now(UTC)) as connection:
        await connection.execute(text("CREATE TEMP TABLE kept (number int GENERATED ALWAYS AS IDENTITY, word text)"))
        await connection.execute(text("INSERT INTO kept (word) VALUES (:text)"), rows)
        kept = await connection.scalars(text("SELECT word FROM kept ORDER BY number"))
        assert kept.all() == [each["text"] for each in rows]


async def test_a_full_disk_of_the_database_is_a_reason_to_try_again_later(database: Database):
    full = "RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = 'could not extend file'"
    await unavailable(database, full, "disk of the database is full")


async def test_a_database_that_takes_no_writes_is_a_reason_to_try_again_at_the_primary(database: Database):
    """So is a standby after a failover, whose address the service still has."""
    writes = "SET LOCAL transaction_read_only = on; CREATE TABLE no_write (id int)"
    with capture_logs() as told:
        await unavailable(database, writes, "must name the primary")
    assert told == []  # it answers, so there is no outage


@pytest.mark.parametrize("state", ["out_of_memory", "too_many_connections"])
async def test_a_database_without_memory_or_connections_is_a_reason_to_try_again_later(database: Database, state: str):
    spent = f"RAISE EXCEPTION USING ERRCODE = '{state}', MESSAGE = 'out of shared memory'"
    await unavailable(database, spent, "out of connections or memory")
