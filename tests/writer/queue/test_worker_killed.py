"""A worker that is killed in the middle of a batch: another one finishes it, and each effect is there once."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import asyncpg
from sqlalchemy import select

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.tables.audit import audit
from retrieval.tables.cases import case_embeddings, case_tools
from retrieval.tables.memories import facts
from tests.paths import ROOT
from tests.writer.conftest import AGENT, MASTER_KEY, Bank, drain, keep, states, wake_all
from writer.profiles import lock_profile
from writer.queue.worker import Worker

EACH = 16
"""Cases of each of four users, one batch together."""
WORKER = """
import asyncio, sys
from app.postgres.pools import service_database
from app.providers.wordllama import WordLlamaEmbedder
from writer.privacy.keys import Keyring
from writer.queue.worker import Worker


async def main():
    async with service_database(sys.argv[1], timeout_s=120) as database:
        await Worker(database, WordLlamaEmbedder(), Keyring(bytes.fromhex(sys.argv[2]))).run()


asyncio.run(main())
"""


async def test_a_worker_killed_amid_a_batch_of_64_loses_and_doubles_nothing(
    bank: Bank, owner: asyncpg.Connection, database_url: str, user: str
):
    await owner.execute("UPDATE cases SET status = 'dead' WHERE status = 'pending'")  # of other tests
    users = [f"{user}-{letter}" for letter in "abcd"]
    for number in range(EACH):
        call = {"tool": "tap", "input": {"turns": number}, "output": "wet"}
        said = [{"role": "user", "content": "I live in Leeds."}]
        for name in users:
            await keep(bank, name, f"water bed {number}", tool_traces=[call], turns=said)

    async def ready() -> Counter[str]:
        rows = [(name, row.status) for name in users for row in await states(bank, name)]
        return Counter(name for name, status in rows if status == "ready")

    async with AsyncExitStack() as stack:
        for name in users[2:]:  # there the worker has to wait, with half of the batch done
            connection = await stack.enter_async_context(bank.database.as_user(name, datetime.now(UTC)))
            await lock_profile(connection, name, AGENT)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        worker = subprocess.Popen(  # noqa: ASYNC220 - it is killed below
            [sys.executable, "-c", WORKER, database_url, MASTER_KEY.hex()], cwd=ROOT, env=environment
        )
        try:
            async with asyncio.timeout(120):
                while await ready() != {users[0]: EACH, users[1]: EACH}:  # noqa: ASYNC110 - another process works
                    await asyncio.sleep(0.05)
        finally:
            worker.kill()
            worker.wait()
    await wake_all(owner)  # the lease of the killed worker ends
    await drain(Worker(bank.database, WordLlamaEmbedder(), bank.keyring))

    assert await ready() == dict.fromkeys(users, EACH)
    for name in users:
        ids = {row.id for row in await states(bank, name)}
        for table in (case_embeddings, case_tools):
            rows = await bank.read(name, select(table.c.case_id).where(table.c.user_sub == name))
            assert Counter(row.case_id for row in rows) == dict.fromkeys(ids, 1)
        entries = select(audit.c.subject_id).where(audit.c.user_sub == name, audit.c.action == "insert_case")
        assert Counter(row.subject_id for row in await bank.read(name, entries)) == dict.fromkeys(ids, 1)
        (fact,) = await bank.read(name, select(facts.c.told).where(facts.c.user_sub == name))
        assert fact.told == EACH
