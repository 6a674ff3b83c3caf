"""Listing every profile of every user, and locking those that a loop touches."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime

from sqlalchemy import insert, select, text

from policy.decide import DEFAULT, Budget
from retrieval.tables.decisions import decisions
from retrieval.tables.profiles import profiles
from tests.logs import draw, put
from tests.writer.conftest import AGENT, Bank
from writer.profiles import PAGE, each_profile, lock_loop, lock_profile

LATER = f"later than {AGENT}"
"""A name behind AGENT's."""


async def test_every_profile_is_listed_once_however_many_pages_it_takes(bank: Bank, user: str):
    agents = [f"{number:05}" for number in range(PAGE + 3)]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(insert(profiles).values([{"user_sub": user, "agent_key": each} for each in agents]))
    assert [profile.agent_key async for profile in each_profile(bank.database)] == agents


async def test_a_loop_over_several_agents_waits_for_the_first_by_name_and_holds_none_meanwhile(bank: Bank, user: str):
    """So two that lock the same agents can never wait for one another."""
    now = datetime.now(UTC)
    await put(bank.database, user, AGENT, draw(1, {DEFAULT: None}, Budget()))
    async with bank.database.as_user(user, now) as connection:
        decision_id = await connection.scalar(select(decisions.c.id).where(decisions.c.user_sub == user))
    await bank.add(user, {"retrieval_id": decision_id})
    async with AsyncExitStack() as held, asyncio.TaskGroup() as both, asyncio.timeout(60):
        other = await held.enter_async_context(bank.database.as_user(user, now))
        await lock_profile(other, user, AGENT)

        async def loop() -> None:
            async with bank.database.as_user(user, now) as connection:
                await lock_loop(connection, user, [LATER], [decision_id])
                order.append("loop")

        order: list[str] = []
        waiting = both.create_task(loop())
        async with bank.database.as_user(user, now) as watcher:
            while not await watcher.scalar(  # noqa: ASYNC110 - Postgres tells nobody
                text("SELECT bool_or(NOT granted) FROM pg_locks WHERE locktype = 'advisory'")
            ):
                await asyncio.sleep(0.01)
        async with bank.database.as_user(user, now) as third:
            await lock_profile(third, user, LATER)
            order.append("third")
        await held.aclose()
        await waiting
    assert order == ["third", "loop"]
