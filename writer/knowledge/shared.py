"""Stores knowledge that an operator shares with all users of an agent: redacted, but not encrypted.

The service's database role can only read shared knowledge. Only the owner of the tables can write it, and the changes
are noted in the audit of the operator.
"""

from collections.abc import Sequence
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import Update, delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import NotFound
from retrieval.pages.memories import text_of
from retrieval.ports import Embedder, embed_accepted
from retrieval.tables.memories import shared_knowledge, shared_memories
from writer.audit import note
from writer.author import Author
from writer.errors import KnowledgeExists, NotTheOwner
from writer.knowledge.entry import KnowledgeWritten
from writer.memories import search_text, searched
from writer.vectors import stored

BATCH = 256
_AS_SERVICE = text("SET LOCAL ROLE casebank_service")
_MAY_WRITE = text("SELECT has_table_privilege('shared_knowledge', 'INSERT')")


async def write_shared(
    database: Database, agent_key: str, entries: Sequence[KnowledgeWritten], operator: Author
) -> list[UUID]:
    """Stores the shared entries in one transaction and returns their ids; an entry that is stored already is updated.

    Two entries are the same if category, type and title are equal, or for entries without a title the text.

    Raises:
        SecretInName: a name looks like a secret.
        NotTheOwner: the database login does not own the tables.
        DatabaseUnavailable: the entries may or may not be stored; the operator can safely write them again.
    """
    for each in entries:
        each.check_names()
    async with database.as_owner(operator.user_sub, operator.authorised_at) as connection:
        await _check_owner(connection)
        ids: list[UUID] = []
        changes: list[tuple[str, UUID]] = []
        for each in entries:
            known = (await connection.execute(same_shared(each.agent, each.shared_hash()))).first()
            entry_id = uuids.uuid7() if known is None else known.id
            ids.append(entry_id)
            if known is None:
                await connection.execute(insert(shared_knowledge).values(id=entry_id, **_columns(each)))
            elif {"title": known.title, "text": known.text} != each.texts:
                await connection.execute(_changed(entry_id, each))
            else:
                continue
            await _remember(connection, entry_id, each)
            changes.append(("insert_shared_knowledge" if known is None else "update_shared_knowledge", entry_id))
        await _note(connection, agent_key, operator, changes)
    return ids


async def edit_shared(database: Database, entry_id: UUID, written: KnowledgeWritten, operator: Author) -> None:
    """Replaces a shared entry of knowledge by `written`.

    Raises:
        NotFound: the agent has no such shared entry.
        KnowledgeExists: another entry has this category, type and title.
        SecretInName, NotTheOwner, DatabaseUnavailable: as for `write_shared`.
    """
    agent_key = written.check_names()
    async with database.as_owner(operator.user_sub, operator.authorised_at) as connection:
        await _check_owner(connection)
        same = (await connection.execute(same_shared(agent_key, written.shared_hash()))).first()
        if same is not None and same.id != entry_id:
            raise KnowledgeExists("another entry has this category, type and title")
        if (await connection.execute(_changed(entry_id, written))).rowcount == 0:
            raise NotFound("no such knowledge")
        await _remember(connection, entry_id, written)
        await _note(connection, agent_key, operator, [("update_shared_knowledge", entry_id)])


async def delete_shared(database: Database, agent_key: str, entry_id: UUID, operator: Author) -> None:
    """Deletes a shared entry of knowledge for good.

    Raises:
        NotFound: the agent has no such shared entry.
        NotTheOwner, DatabaseUnavailable: as for `write_shared`.
    """
    async with database.as_owner(operator.user_sub, operator.authorised_at) as connection:
        await _check_owner(connection)
        mine = shared_knowledge.c.agent_key == agent_key, shared_knowledge.c.id == entry_id
        if (await connection.execute(delete(shared_knowledge).where(*mine))).rowcount == 0:
            raise NotFound("no such knowledge")
        await _note(connection, agent_key, operator, [("delete_shared_knowledge", entry_id)])


async def embed_shared(database: Database, embedder: Embedder, operator: Author) -> int:
    """Embeds every shared entry of knowledge without a vector of the embedder's model, and returns their number.

    Raises:
        EmbedderError: entries that were embedded before the error keep their vectors; keywords still find the others.
        NotTheOwner, DatabaseUnavailable: as for `write_shared`.
    """
    done, after = 0, UUID(int=0)
    while True:
        async with database.as_owner(operator.user_sub, operator.authorised_at) as connection:
            await _check_owner(connection)
            rows = (await connection.execute(unembedded_shared(embedder.model, after))).all()
        if not rows:
            return done
        texts = [searched(text_of({"title": row.title, "text": row.text})) for row in rows]
        vectors = await embed_accepted(embedder, texts)  # outside any transaction: it may take a while
        async with database.as_owner(operator.user_sub, operator.authorised_at) as connection:
            for row, vector in zip(rows, vectors, strict=True):
                if vector is not None:
                    memory = update(shared_memories).where(shared_memories.c.id == row.id)
                    values = {"model": embedder.model, "embedding": stored(vector)}
                    await connection.execute(memory.values(values))
        done, after = done + len(rows), rows[-1].id


def same_shared(agent_key: str, said: bytes) -> Rows:
    """Returns the statement that selects the agent's shared entry with this hash, at most one."""
    same = shared_knowledge.c.agent_key == agent_key, shared_knowledge.c.said == said
    columns = [shared_knowledge.c[name] for name in ("id", "title", "text")]
    return select(*columns).where(*same).order_by(shared_knowledge.c.id)


def unembedded_shared(model: str, after: UUID) -> Rows:
    """Returns the statement that selects the next BATCH shared entries without a vector of this model, by rising id."""
    missing = shared_memories.c.model.is_distinct_from(model), shared_memories.c.id > after
    of = shared_knowledge.c.id == shared_memories.c.knowledge_id
    columns = shared_memories.c.id, shared_knowledge.c.title, shared_knowledge.c.text
    return select(*columns).join(shared_knowledge, of).where(*missing).order_by(shared_memories.c.id).limit(BATCH)


async def _check_owner(connection: AsyncConnection) -> None:
    if not await connection.scalar(_MAY_WRITE):
        raise NotTheOwner("only the owner of the tables writes shared knowledge: use the DATABASE_URL that migrates")


def _changed(entry_id: UUID, written: KnowledgeWritten) -> Update:
    row = update(shared_knowledge).where(shared_knowledge.c.id == entry_id)
    return row.where(shared_knowledge.c.agent_key == written.agent).values(updated_at=func.now(), **_columns(written))


def _columns(written: KnowledgeWritten) -> dict[str, object]:
    names = {"agent_key": written.agent, "category": written.category, "entry_type": written.type}
    return {**names, **written.texts, "said": written.shared_hash()}


async def _remember(connection: AsyncConnection, entry_id: UUID, written: KnowledgeWritten) -> None:
    """Replaces the search text of an entry; its vector is computed later, by `embed_shared`."""
    await connection.execute(delete(shared_memories).where(shared_memories.c.knowledge_id == entry_id))
    row = {"id": uuids.uuid7(), "agent_key": written.agent, "knowledge_id": entry_id}
    await connection.execute(insert(shared_memories).values(**row, search_text=search_text(text_of(written.texts))))


async def _note(
    connection: AsyncConnection, agent_key: str, operator: Author, done: Sequence[tuple[str, UUID]]
) -> None:
    """Adds the changes to the operator's audit, in the role of the service, which alone may write audits."""
    await connection.execute(_AS_SERVICE)
    await note(connection, *(operator.change(agent_key, action, id_) for action, id_ in done))
