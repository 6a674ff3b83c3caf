"""Knowledge that a user keeps for an agent: checked, redacted, sealed; the same entry again is updated, not doubled."""

from typing import Annotated
from uuid import UUID

import uuid_utils.compat as uuids
from pydantic import AfterValidator, ConfigDict, Field
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import NotFound
from retrieval.knowledge import text_of
from retrieval.knowledge_schema import knowledge
from retrieval.schema import profiles
from writer.audit import Change, note
from writer.author import Author
from writer.errors import KnowledgeExists
from writer.memories import MAX_CHARS, remember_knowledge
from writer.privacy.keys import Keyring
from writer.privacy.names import nameable
from writer.privacy.redact import redact_text
from writer.privacy.words import Words
from writer.profiles import lock_profile
from writer.run import AgentKey, Strict, line


def _clean(text: str) -> str:
    return redact_text(text)[0]


_Name = line(100, blank=False)
_Text = Annotated[line(MAX_CHARS, blank=False), AfterValidator(_clean)]  # type: ignore[valid-type]
EntryTitle = Annotated[line(200, blank=False), AfterValidator(_clean)]  # type: ignore[valid-type]


def hash_of_titled(words: Words, category: str, entry_type: str, title: str) -> bytes:
    """Returns what stands for an entry with that title, whatever its text is."""
    return words.hash_of_knowledge(category, entry_type, "title", title)


class KnowledgeWritten(Strict):
    """An entry of knowledge, by hand."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "agent": "coach",
                    "category": "banking",
                    "type": "rule",
                    "title": "Overnight rate",
                    "text": "Savings earn 2.1 percent.",
                }
            ]
        },
    )

    agent: AgentKey
    category: _Name = Field(description="what it is about")  # type: ignore[valid-type]
    type: _Name = Field(default="fact", description="what kind of entry it is: a rule, a term, …")  # type: ignore[valid-type]
    title: EntryTitle | None = Field(  # type: ignore[valid-type]
        default=None,
        description="an entry of the same category, type and title is updated; without one, of the same text",
    )
    text: _Text  # type: ignore[valid-type]

    @property
    def said(self) -> dict[str, str]:
        """What it says."""
        return {"title": self.title or "", "text": self.text}

    def said_hash(self, words: Words) -> bytes:
        """Returns what stands for the entry, whatever its text is if it has a title."""
        if self.title:
            return hash_of_titled(words, self.category, self.type, self.title)
        return words.hash_of_knowledge(self.category, self.type, "text", self.text)

    def check_names(self) -> str:
        """Returns the agent's name.

        Raises:
            SecretInName: it, the category or the type looks like a secret.
        """
        nameable(self.category, "a category's")
        nameable(self.type, "a type's")
        return nameable(self.agent)


async def write_knowledge(database: Database, keyring: Keyring, written: KnowledgeWritten, author: Author) -> UUID:
    """Stores the entry, or updates the one of the same category, type and title; returns its id.

    Raises:
        SecretInName: a name looks like a secret.
        UserErased: the user was erased after the author was authorised.
        DatabaseUnavailable: nothing was stored, or nobody can say whether it was; to repeat it does no harm.
    """
    agent_key = written.check_names()
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        words = Words(author.user_sub, await keyring.find_or_make(connection, author.user_sub))
        profile = {"user_sub": author.user_sub, "agent_key": agent_key}
        await connection.execute(upsert(profiles).values(profile).on_conflict_do_nothing())
        await lock_profile(connection, author.user_sub, agent_key)
        known = (await connection.execute(same_entry(author.user_sub, agent_key, written.said_hash(words)))).first()
        if known is not None:
            if words.open_knowledge(known.id, known.words) != written.said:
                await _change(connection, words, known.id, written, author)
            return UUID(str(known.id))
        entry_id = uuids.uuid7()
        row = {**profile, "id": entry_id, **_columns(words, entry_id, written)}
        await connection.execute(insert(knowledge).values(row))
        await remember_knowledge(connection, author.user_sub, agent_key, entry_id, text_of(written.said))
        await note(connection, Change.of((author.user_sub, agent_key), author.actor, "insert_knowledge", entry_id))
        return entry_id


async def edit_knowledge(
    database: Database, keyring: Keyring, entry_id: UUID, written: KnowledgeWritten, author: Author
) -> None:
    """Puts this in the entry's place.

    Raises:
        NotFound: the user has no such entry of that agent.
        KnowledgeExists: another entry has that category, type and title.
        SecretInName: a name looks like a secret.
        UserErased: the user was erased after the author was authorised.
        DatabaseUnavailable: as for `write_knowledge`.
    """
    agent_key = written.check_names()
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        words = Words(author.user_sub, await keyring.find_or_make(connection, author.user_sub))
        await lock_profile(connection, author.user_sub, agent_key)
        mine = knowledge.c.user_sub == author.user_sub, knowledge.c.agent_key == agent_key
        if await connection.scalar(select(knowledge.c.id).where(*mine, knowledge.c.id == entry_id)) is None:
            raise NotFound("no such knowledge")
        same = (await connection.execute(same_entry(author.user_sub, agent_key, written.said_hash(words)))).first()
        if same is not None and same.id != entry_id:
            raise KnowledgeExists("another entry has this category, type and title")
        await _change(connection, words, entry_id, written, author)


async def delete_knowledge(connection: AsyncConnection, author: Author, entry_id: UUID) -> None:
    """Deletes an entry for good.

    Raises:
        NotFound: the user has no such entry.
    """
    gone = delete(knowledge).where(knowledge.c.user_sub == author.user_sub, knowledge.c.id == entry_id)
    agent_key = await connection.scalar(gone.returning(knowledge.c.agent_key))
    if agent_key is None:
        raise NotFound("no such knowledge")
    await note(connection, Change.of((author.user_sub, agent_key), author.actor, "delete_knowledge", entry_id))


def same_entry(user_sub: str, agent_key: str, said: bytes) -> Rows:
    """Returns the statement for the agent's entry of that hash; there is one at most."""
    mine = knowledge.c.user_sub == user_sub, knowledge.c.agent_key == agent_key
    return select(knowledge.c.id, knowledge.c.words).where(*mine, knowledge.c.said == said).order_by(knowledge.c.id)


async def _change(
    connection: AsyncConnection, words: Words, entry_id: UUID, written: KnowledgeWritten, author: Author
) -> None:
    row = update(knowledge).where(knowledge.c.user_sub == author.user_sub, knowledge.c.id == entry_id)
    await connection.execute(row.values(updated_at=func.now(), **_columns(words, entry_id, written)))
    await remember_knowledge(connection, author.user_sub, written.agent, entry_id, text_of(written.said))
    owner = author.user_sub, written.agent
    await note(connection, Change.of(owner, author.actor, "update_knowledge", entry_id))


def _columns(words: Words, entry_id: UUID, written: KnowledgeWritten) -> dict[str, object]:
    return {
        "category": written.category,
        "entry_type": written.type,
        "key_id": words.key_id,
        "words": words.seal_knowledge(entry_id, **written.said),
        "said": written.said_hash(words),
    }
