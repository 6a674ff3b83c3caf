"""Stores the knowledge of one user for an agent, encrypted; writing the same entry again updates it."""

from collections.abc import Sequence
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import NotFound
from retrieval.recall.knowledge import text_of
from retrieval.tables.memories import knowledge
from writer.audit import Change, note
from writer.author import Author
from writer.errors import KnowledgeExists
from writer.knowledge.entry import KnowledgeWritten
from writer.memories import remember_knowledge
from writer.privacy.contexts import forget_contexts
from writer.privacy.keys import Keyring
from writer.privacy.words import Words, WordsOfPage
from writer.profiles import lock_profile, lock_profile_of, open_for_writing


async def write_knowledge(
    database: Database, keyring: Keyring, agent_key: str, entries: Sequence[KnowledgeWritten], author: Author
) -> list[UUID]:
    """Stores entries of knowledge in one transaction and returns their ids; entries that the user has are updated.

    Two entries are the same if category, type and title are equal, or for entries without a title the text. An entry
    that does not decrypt is updated, too.

    Raises:
        SecretInName: a name looks like a secret.
        MemoryOff: the user switched off writing for this agent.
        DatabaseUnavailable: the entries may or may not be stored; the caller can safely write them again.
    """
    for each in entries:
        each.check_names()
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        words = WordsOfPage(author.user_sub, await keyring.find_or_make(connection, author.user_sub))
        await lock_profile(connection, author.user_sub, agent_key)
        await open_for_writing(connection, author.user_sub, agent_key)
        ids, changed = list[UUID](), list[UUID]()
        for each in entries:
            owner = author.user_sub, each.agent
            known = (await connection.execute(same_entry(*owner, each.keyed_hash(words)))).first()
            if known is not None:
                if words.open("knowledge", known.words, known.id) != each.texts:
                    await _change(connection, words, known.id, each, author)
                    changed.append(UUID(str(known.id)))
                ids.append(UUID(str(known.id)))
                continue
            entry_id = uuids.uuid7()
            row = {"user_sub": author.user_sub, "agent_key": each.agent, "id": entry_id}
            await connection.execute(insert(knowledge).values({**row, **_columns(words, entry_id, each)}))
            await remember_knowledge(connection, *owner, entry_id, text_of(each.texts))
            await note(connection, Change.of(owner, author.actor, "insert_knowledge", entry_id))
            ids.append(entry_id)
        if changed:  # contexts may quote the texts before
            await forget_contexts(connection, author.user_sub, agent_key, since=min(changed))
    return ids


async def edit_knowledge(
    database: Database, keyring: Keyring, entry_id: UUID, written: KnowledgeWritten, author: Author
) -> None:
    """Replaces an entry of the user's knowledge by `written`.

    Raises:
        NotFound: the agent has no such entry of the user.
        KnowledgeExists: another entry has this category, type and title.
        MemoryOff: the user switched off writing for this agent.
        SecretInName: a name looks like a secret.
    """
    agent_key = written.check_names()
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        words = Words(author.user_sub, await keyring.find_or_make(connection, author.user_sub))
        await lock_profile(connection, author.user_sub, agent_key)
        await open_for_writing(connection, author.user_sub, agent_key)
        mine = knowledge.c.user_sub == author.user_sub, knowledge.c.agent_key == agent_key
        if await connection.scalar(select(knowledge.c.id).where(*mine, knowledge.c.id == entry_id)) is None:
            raise NotFound("no such knowledge")
        same = (await connection.execute(same_entry(author.user_sub, agent_key, written.keyed_hash(words)))).first()
        if same is not None and same.id != entry_id:
            raise KnowledgeExists("another entry has this category, type and title")
        await _change(connection, words, entry_id, written, author)
        await forget_contexts(connection, author.user_sub, agent_key, since=entry_id)  # they may quote the text before


async def delete_knowledge(
    connection: AsyncConnection, author: Author, entry_id: UUID, agent_key: str | None = None
) -> None:
    """Deletes an entry of the user's knowledge for good; if `agent_key` is given, only an entry of that agent.

    Raises:
        NotFound: the user has no such entry.
    """
    mine = knowledge.c.user_sub == author.user_sub, knowledge.c.id == entry_id
    # whoever writes the entry again looks it up and then updates it
    await lock_profile_of(connection, author.user_sub, knowledge.c.id, entry_id)
    deletion = delete(knowledge).where(*mine)
    if agent_key is not None:
        deletion = deletion.where(knowledge.c.agent_key == agent_key)
    of_agent = await connection.scalar(deletion.returning(knowledge.c.agent_key))
    if of_agent is None:
        raise NotFound("no such knowledge")
    await forget_contexts(connection, author.user_sub, of_agent, since=entry_id)
    await note(connection, Change.of((author.user_sub, of_agent), author.actor, "delete_knowledge", entry_id))


def same_entry(user_sub: str, agent_key: str, said: bytes) -> Rows:
    """Returns the statement that selects the user's entry for the agent with this keyed hash, at most one."""
    mine = knowledge.c.user_sub == user_sub, knowledge.c.agent_key == agent_key
    return select(knowledge.c.id, knowledge.c.words).where(*mine, knowledge.c.said == said).order_by(knowledge.c.id)


async def _change(
    connection: AsyncConnection, words: Words, entry_id: UUID, written: KnowledgeWritten, author: Author
) -> None:
    row = update(knowledge).where(knowledge.c.user_sub == author.user_sub, knowledge.c.id == entry_id)
    await connection.execute(row.values(updated_at=func.now(), **_columns(words, entry_id, written)))
    await remember_knowledge(connection, author.user_sub, written.agent, entry_id, text_of(written.texts))
    owner = author.user_sub, written.agent
    await note(connection, Change.of(owner, author.actor, "update_knowledge", entry_id))


def _columns(words: Words, entry_id: UUID, written: KnowledgeWritten) -> dict[str, object]:
    return {
        "category": written.category,
        "entry_type": written.type,
        "key_id": words.key_id,
        "words": words.seal("knowledge", written.texts, entry_id),
        "said": written.keyed_hash(words),
    }
