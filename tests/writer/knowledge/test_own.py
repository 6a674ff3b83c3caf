"""A user's own knowledge: an entry that is deleted while it is written, and many that are written at once."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
from sqlalchemy import event, select

from retrieval.tables.audit import audit
from retrieval.tables.memories import knowledge, memories
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


async def test_many_entries_take_as_many_statements_as_one(bank: Bank, user: str):
    statements: list[str] = []
    engine = bank.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _c, _u, statement, *_: statements.append(statement.split()[0]))

    async def write(count: int, text: str) -> list[UUID]:
        titles = [f"rate {number}" for number in range(count)]
        entries = [KnowledgeWritten(agent=AGENT, category="savings", title=each, text=text) for each in titles]
        statements.clear()
        ids = await write_knowledge(bank.database, bank.keyring, AGENT, entries, bank.author(user))
        taken.append(statements.copy())
        return ids

    taken: list[list[str]] = []
    await write(1, "first")
    await write(1, "one")
    ids = await write(40, "one")
    assert await write(40, "two") == ids
    assert await write(40, "two") == ids
    assert len(taken[1]) == len(taken[3]) > len(taken[2]) > len(taken[4])
    found = await bank.read(user, select(memories.c.knowledge_id).where(memories.c.user_sub == user))
    assert sorted(row.knowledge_id for row in found) == sorted(ids)
    noted = select(audit.c.action).where(audit.c.user_sub == user).order_by(audit.c.id)
    actions = [row.action for row in await bank.read(user, noted)]
    assert [actions.count(f"{each}_knowledge") for each in ("insert", "update")] == [40, 41]
