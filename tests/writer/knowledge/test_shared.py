"""Shared knowledge: each entry gets its vector, whatever another one says."""

from sqlalchemy import select

from retrieval.tables.memories import shared_memories
from tests.writer.conftest import AGENT, Bank
from tests.writer.upkeep.test_reembed import Refusing
from writer.knowledge.entry import KnowledgeWritten
from writer.knowledge.shared import embed_shared, write_shared


async def test_an_entry_that_the_embedder_refuses_keeps_no_other_from_its_vector(bank: Bank, user: str):
    entries = [KnowledgeWritten(agent=AGENT, category="c", text=text) for text in ("poison", "2.1 percent")]
    _, accepted = await write_shared(bank.database, AGENT, entries, bank.author(user))
    await embed_shared(bank.database, Refusing("new"), bank.author(user))
    embedded = select(shared_memories.c.knowledge_id).where(shared_memories.c.model == "new")
    assert await bank.read(user, embedded) == [(accepted,)]
