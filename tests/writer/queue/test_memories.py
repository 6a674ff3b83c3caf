"""Memories in the queue: one that cannot be read stops no other."""

import asyncpg
import pytest
from sqlalchemy import select, update

from retrieval.tables.memories import memories
from retrieval.tables.sessions import turns
from tests.fakes.openai_server import Fault, OpenAIServer
from tests.writer.conftest import AGENT, PACE, Bank, MakeWorker, drain
from writer.sessions.append import append_turns
from writer.sessions.prepare import TurnsTold, prepare_turns


@pytest.mark.parametrize("fault", [Fault.WRONG_DIMENSION, Fault.STATUS_400])
async def test_an_embedder_that_is_ill_for_long_costs_no_memory_its_vector(  # noqa: PLR0913, PLR0917 - fixtures
    fault: Fault, bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, owner: asyncpg.Connection
):
    await owner.execute("UPDATE memories SET status = 'ready' WHERE status = 'pending'")
    told = TurnsTold.model_validate({"agent": AGENT, "turns": [{"role": "user", "content": "Hello."}]})
    await append_turns(bank.database, bank.keyring, "chat", prepare_turns(told), bank.author(user))
    worker = worker_on(server)
    server.fault = fault
    for _ in range(PACE.max_attempts + 1):
        await worker.run_once()
        await owner.execute("UPDATE memories SET available_at = now() WHERE status = 'pending'")
    server.fault = None
    await drain(worker)
    columns = select(memories.c.status, memories.c.embedding.is_not(None)).where(memories.c.user_sub == user)
    assert [tuple(row) for row in await bank.read(user, columns)] == [("ready", True)]


async def test_a_memory_that_cannot_be_read_is_handed_back_alone(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, owner: asyncpg.Connection
):
    await owner.execute("UPDATE memories SET status = 'ready' WHERE status = 'pending'")
    said = [{"role": "user", "content": f"hobby number {number}"} for number in range(3)]
    told = TurnsTold.model_validate({"agent": AGENT, "turns": said})
    await append_turns(bank.database, bank.keyring, "chat", prepare_turns(told), bank.author(user))
    async with bank.database.as_user(user, bank.author(user).authorised_at) as connection:
        of_one = update(turns).where(turns.c.user_sub == user, turns.c.number == 2)
        await connection.execute(of_one.values(payload=b"changed"))
    await worker_on(server).run_once()
    columns = select(memories.c.status, memories.c.last_error).where(memories.c.user_sub == user)
    rows = await bank.read(user, columns.order_by(memories.c.turn_number))
    assert list(map(tuple, rows)) == [("ready", None), ("pending", "SealBroken"), ("ready", None)]
