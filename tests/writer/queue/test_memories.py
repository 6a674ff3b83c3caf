"""Memories in the queue: one that cannot be read stops no other."""

import asyncpg
from sqlalchemy import select, update

from retrieval.tables.memories import memories
from retrieval.tables.sessions import turns
from tests.fakes.openai_server import OpenAIServer
from tests.writer.conftest import AGENT, Bank, MakeWorker
from writer.sessions.append import append_turns
from writer.sessions.prepare import TurnsTold, prepare_turns


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
