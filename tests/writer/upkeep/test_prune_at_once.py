"""Pruning meets a write to what it is about to delete: what was acknowledged stays."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import func, select

from retrieval.tables.runs import checkpoints, run_steps
from retrieval.tables.sessions import turns
from tests.writer.blocked import begin_blocked
from tests.writer.conftest import AGENT, Bank
from tests.writer.under_way import say, take_step
from writer.checkpoints import CheckpointWritten, write_checkpoint
from writer.upkeep.prune import prune
from writer.upkeep.silent_runs import abort_all


@pytest.fixture(autouse=True)
async def no_runs_left(owner: asyncpg.Connection) -> AsyncIterator[None]:
    yield
    await owner.execute("DELETE FROM runs")


async def prune_during(bank: Bank, user: str, owner: asyncpg.Connection, hold: str, write: Coroutine[Any, Any, Any]):
    """Begins the write, which then waits for what ``hold`` locks, and prunes before it ends."""
    async with asyncio.timeout(60):
        async with owner.transaction():
            await owner.execute(hold)
            writing = await begin_blocked(owner, write)
            pruning = await begin_blocked(owner, prune(bank.database, bank.profile(user), now=datetime.now(UTC)), 2)
        await asyncio.gather(writing, pruning)


async def count(bank: Bank, user: str, table: Any) -> int:
    return (await bank.read(user, select(func.count()).where(table.c.user_sub == user)))[0][0]


async def test_a_session_that_goes_on_while_it_is_pruned_keeps_its_turns(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    await say(bank, user, "chat", "hello")
    await bank.set_profile(user, session_ttl_days=1)
    await owner.execute("UPDATE sessions SET last_turn_at = now() - interval '3 days' WHERE user_sub = $1", user)
    await prune_during(bank, user, owner, "LOCK TABLE memories IN SHARE MODE", say(bank, user, "chat", "again"))
    assert await count(bank, user, turns) == 2


async def test_a_run_that_goes_on_while_it_is_pruned_keeps_its_steps(bank: Bank, user: str, owner: asyncpg.Connection):
    await take_step(bank, user, run_id := uuid4())
    assert await abort_all(bank.database, bank.keyring, silent_for=timedelta()) == 1
    await owner.execute("UPDATE runs SET ended_at = now() - interval '60 days' WHERE user_sub = $1", user)
    await prune_during(bank, user, owner, "LOCK TABLE audit IN SHARE MODE", take_step(bank, user, run_id, 2))
    assert await count(bank, user, run_steps) == 2


async def test_a_thread_that_goes_on_while_it_is_pruned_keeps_its_checkpoints(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    checkpoint = {"agent": AGENT, "thread_id": "thread", "checkpoint_id": str(uuid4())}

    async def write(**part: Any) -> None:
        written = CheckpointWritten.model_validate({**checkpoint, "parts": [part]})
        await write_checkpoint(bank.database, bank.keyring, written, bank.author(user))

    await write(value="the state")
    await bank.set_profile(user, session_ttl_days=1)
    await owner.execute("UPDATE checkpoints SET created_at = now() - interval '3 days' WHERE user_sub = $1", user)
    # the row is there and not seen by others while it waits for the key that it refers to
    hold = f"SELECT 1 FROM user_keys WHERE user_sub = '{user}' FOR UPDATE"  # noqa: S608 - a name of this test
    await prune_during(bank, user, owner, hold, write(task_id="task", value="a write"))
    assert await count(bank, user, checkpoints) == 2
