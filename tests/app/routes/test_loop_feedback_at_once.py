"""Rewards that come at the same moment for slates of the same cases: each counts, and none fails."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
import pytest

from app.postgres.pools import dsn
from tests.service import User
from writer.rewards.feedback import Feedback, give_feedback

TASK = "water the plants on the balcony"


async def give(alice: User, retrieval_id: str, given: asyncio.Event, until: asyncio.Event) -> None:
    """Gives the retrieval a reward, in a transaction that then stays open for a while."""
    async with alice.service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        await give_feedback(connection, alice.name, "test", Feedback(1.0, "user", decision_id=UUID(retrieval_id)))
        given.set()
        await until.wait()


async def somebody_waits(database_url: str) -> None:
    owner = await asyncpg.connect(dsn(database_url))
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(60):
        while not await owner.fetchval(waiting):  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.02)
    await owner.close()


async def test_of_two_rewards_that_overlap_neither_is_lost_from_the_record_of_a_case(alice: User, database_url: str):
    await alice.retain(TASK)
    await alice.settle()
    one, other = [(await alice.retrieve(TASK))["retrieval_id"] for _ in range(2)]
    given, may_end = asyncio.Event(), asyncio.Event()
    first = asyncio.create_task(give(alice, one, given, may_end))
    await given.wait()
    second = asyncio.create_task(give(alice, other, asyncio.Event(), may_end))
    await somebody_waits(database_url)
    may_end.set()
    await asyncio.gather(first, second)
    rows = await alice.rows("SELECT reuse_count FROM cases WHERE user_sub = :user_sub")
    assert [row.reuse_count for row in rows] == [pytest.approx(2)]
