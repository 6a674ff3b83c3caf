"""Stores the knowledge of one user for an agent, encrypted; writing the same entry again updates it."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import ARRAY, LargeBinary, any_, delete, literal, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import NotFound
from retrieval.pages.memories import text_of
from retrieval.tables.memories import knowledge
from writer.audit import Change, note
from writer.author import Author
from writer.errors import KnowledgeExists
from writer.knowledge.entry import KnowledgeWritten
from writer.memories import remember_knowledge
from writer.privacy.contexts import forget_contexts
from writer.privacy.keys import Keyring
from writer.privacy.words import Words
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
        words = (await keyring.find_or_make(connection, author.user_sub)).of_page
        await lock_profile(connection, author.user_sub, agent_key)
        await open_for_writing(connection, author.user_sub, agent_key)
        said = [each.keyed_hash(words) for each in entries]
        known = {
            row.said: (UUID(str(row.id)), words.open("knowledge", row.words, row.id))
            for row in await connection.execute(same_entries(author.user_sub, agent_key, said))
        }
        ids, fresh, changed = list[UUID](), dict[UUID, KnowledgeWritten](), dict[UUID, KnowledgeWritten]()
        for each, name in zip(entries, said, strict=True):
            if name not in known:
                known[name] = uuids.uuid7(), each.texts
                fresh[known[name][0]] = each
            entry_id, texts = known[name]
            if texts != each.texts:
                changed[entry_id] = each
            ids.append(entry_id)
        await _store(connection, words, author.actor, fresh, changed)
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
        words = await keyring.find_or_make(connection, author.user_sub)
        await lock_profile(connection, author.user_sub, agent_key)
        await open_for_writing(connection, author.user_sub, agent_key)
        mine = knowledge.c.user_sub == author.user_sub, knowledge.c.agent_key == agent_key
        if await connection.scalar(select(knowledge.c.id).where(*mine, knowledge.c.id == entry_id)) is None:
            raise NotFound("no such knowledge")
        same = await connection.execute(same_entries(author.user_sub, agent_key, [written.keyed_hash(words)]))
        if any(row.id != entry_id for row in same):
            raise KnowledgeExists("another entry has this category, type and title")
        await _store(connection, words, author.actor, {}, {entry_id: written})


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
    await note(connection, author.change(of_agent, "delete_knowledge", entry_id))


def same_entries(user_sub: str, agent_key: str, said: Sequence[bytes]) -> Rows:
    """Returns the statement that selects the user's entries for the agent with these keyed hashes, one for each."""
    mine = knowledge.c.user_sub == user_sub, knowledge.c.agent_key == agent_key
    hashes = literal(said, ARRAY(LargeBinary))  # an array is one parameter, and a statement has 32,767
    return select(knowledge.c.said, knowledge.c.id, knowledge.c.words).where(*mine, knowledge.c.said == any_(hashes))


async def _store(
    connection: AsyncConnection,
    words: Words,
    actor: str,
    fresh: Mapping[UUID, KnowledgeWritten],
    changed: Mapping[UUID, KnowledgeWritten],
) -> None:
    """Stores fresh and changed entries by their ids, makes them findable, and notes each in the audit."""
    entries = {**fresh, **changed}
    rows = [
        {
            "user_sub": words.user_sub,
            "agent_key": written.agent,
            "id": entry_id,
            "category": written.category,
            "entry_type": written.type,
            "key_id": words.key_id,
            "words": words.seal("knowledge", written.texts, entry_id),
            "said": written.keyed_hash(words),
        }
        for entry_id, written in entries.items()
    ]
    if rows:
        stored = upsert(knowledge)
        names = ("category", "entry_type", "key_id", "words", "said", "updated_at")
        new = {name: stored.excluded[name] for name in names}
        await connection.execute(stored.on_conflict_do_update(index_elements=["user_sub", "id"], set_=new), rows)
        texts = {(each.agent, entry_id): text_of(each.texts) for entry_id, each in entries.items()}
        await remember_knowledge(connection, words.user_sub, texts)
    for agent_key in {each.agent for each in changed.values()}:  # contexts may quote the texts before
        await forget_contexts(connection, words.user_sub, agent_key, since=min(changed))
    for action, done in (("insert_knowledge", fresh), ("update_knowledge", changed)):
        owners = {entry_id: (words.user_sub, each.agent) for entry_id, each in done.items()}
        await note(connection, *(Change.of(owner, actor, action, entry_id) for entry_id, owner in owners.items()))
