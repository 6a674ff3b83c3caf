"""Memories inserted by SQL, as the worker takes them: once, whatever dies, and visibly where it cannot."""

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import insert

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.tables.profiles import profiles
from tests.cluster import one_postgres
from tests.fakes.openai_server import OpenAIServer
from tests.lessons import LEARNED, RECORD
from tests.paths import ROOT
from tests.writer.conftest import MASTER_KEY, PACE, Bank, MakeWorker, drain, states
from tests.writer.queue.test_worker_killed import WORKER
from writer.queue import statements
from writer.queue.statements import depth
from writer.queue.worker import Worker

BLOCKED = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO profiles%'"


async def add(owner: asyncpg.Connection, user: str, metadata: Any) -> UUID:
    async with owner.transaction():
        await owner.execute("SELECT casebank_enter($1, now())", user)
        statement = "INSERT INTO context_eng_memories (content, metadata) VALUES ($1, $2) RETURNING id"
        return await owner.fetchval(statement, "water the garden", json.dumps(metadata))


async def queued(owner: asyncpg.Connection, user: str) -> list[tuple[str, str | None]]:
    rows = await owner.fetch("SELECT status, last_error FROM inserted_memories WHERE user_sub = $1", user)
    return [tuple(row) for row in rows]


async def due(owner: asyncpg.Connection) -> None:
    """Ends the leases and the delays of failed attempts."""
    await owner.execute("UPDATE inserted_memories SET available_at = now()")


@one_postgres
async def test_a_memory_whose_worker_is_killed_amid_its_transaction_is_stored_once(
    bank: Bank, owner: asyncpg.Connection, database_url: str, user: str
):
    id_ = await add(owner, user, LEARNED)
    async with bank.database.as_user(user, datetime.now(UTC)) as other:
        # the worker has taken the row off the queue, and waits here before it can store the case
        await other.execute(insert(profiles).values(user_sub=user, agent_key="context-eng"))
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        worker = subprocess.Popen(  # noqa: ASYNC220 - it is killed below
            [sys.executable, "-c", WORKER, database_url, MASTER_KEY.hex()], cwd=ROOT, env=environment
        )
        try:
            async with asyncio.timeout(60):
                while not await owner.fetchval(BLOCKED):  # noqa: ASYNC110 - another process works
                    await asyncio.sleep(0.05)
        finally:
            worker.kill()
            worker.wait()
    async with asyncio.timeout(60):
        while await owner.fetchval(BLOCKED):  # noqa: ASYNC110 - its backend ends by itself
            await asyncio.sleep(0.05)
    assert (await queued(owner, user), await states(bank, user)) == ([("pending", None)], [])
    await due(owner)
    await drain(Worker(bank.database, WordLlamaEmbedder(), bank.keyring))
    assert await queued(owner, user) == []
    assert [(row.id, row.status, row.source) for row in await states(bank, user)] == [(id_, "ready", "sql")]


async def test_a_memory_that_the_service_refuses_ends_as_dead_which_counts_as_a_dead_case_and_can_be_queued_again(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    await add(owner, user, LEARNED | {"data": RECORD | {"procedure_name": "word " * 50}})
    worker = worker_on(server)
    for _ in range(PACE.max_attempts):
        assert await worker.run_once() == 1
        await due(owner)
    assert await queued(owner, user) == [("dead", "ValidationError")]
    assert await worker.run_once() == 0
    async with bank.database.as_worker() as connection:
        assert {row.status: row.rows for row in await connection.execute(depth())} == {"dead": 1}
        again = await connection.execute(statements.requeue_dead(user, worker.inserted.queue.table))
        assert len(again.all()) == 1
    assert await queued(owner, user) == [("pending", "ValidationError")]
    await owner.execute("DELETE FROM inserted_memories")


async def test_a_memory_of_an_agent_that_was_switched_off_meanwhile_is_not_stored(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    await add(owner, user, LEARNED)
    await owner.execute("INSERT INTO profiles (user_sub, agent_key, writing) VALUES ($1, 'context-eng', false)", user)
    assert await worker_on(server).run_once() == 1
    assert (await queued(owner, user), await states(bank, user)) == ([("pending", "MemoryOff")], [])
    await owner.execute("DELETE FROM inserted_memories")
