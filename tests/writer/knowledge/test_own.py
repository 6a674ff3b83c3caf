"""A user's own knowledge: an entry that is deleted while it is written is written anew."""

import asyncio
from datetime import UTC, datetime

import asyncpg
from sqlalchemy import select

from retrieval.tables.memories import knowledge
from tests.writer.blocked import begin_blocked
from tests.writer.conftest import AGENT, Bank
from writer.knowledge.entry import KnowledgeWritten
from writer.knowledge.own import delete_knowledge, write_knowledge


async def test_an_entry_that_is_deleted_while_it_is_written_again_is_written(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    def write(text: str):
        entry = KnowledgeWritten(agent=AGENT, category="savings", title="rate", text=text)
        return write_knowledge(bank.database, bank.keyring, AGENT, [entry], bank.author(user))

    (first,) = await write("2.1 percent")
    async with asyncio.timeout(60):
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await delete_knowledge(connection, bank.author(user), first)
            writing = await begin_blocked(owner, write("2.2 percent"))
        written = await writing
    rows = await bank.read(user, select(knowledge.c.id).where(knowledge.c.user_sub == user))
    assert [row.id for row in rows] == written
