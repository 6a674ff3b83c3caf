"""Handles memories without a vector: decrypts their texts and embeds them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from sqlalchemy import Select, Text, Update, Uuid, and_, bindparam, case, func, literal, select, update

from retrieval.database.rows import AnyRow, Rows
from retrieval.errors import EmbedderMisbehaved, EmbedderRefused, SealBroken
from retrieval.pages.memories import text_of
from retrieval.ports import Embedder, embed_each
from retrieval.tables.memories import facts, knowledge, memories
from retrieval.tables.sessions import turns
from writer.memories import searched, text_of_turn
from writer.privacy.keys import Keyring
from writer.privacy.words import Words
from writer.queue.lease import Lease
from writer.queue.queue import Queue
from writer.vectors import as_text, stored_later


@dataclass(slots=True)
class MemoryHandler:
    """Embeds memories (searchable turns, facts and knowledge), one user's after the other's."""

    queue: Queue
    embedder: Embedder
    keyring: Keyring

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Embeds the leased memories and stores their vectors; called by the worker with each batch of the queue.

        Raises:
            DatabaseUnavailable: some of the memories have no vector yet.
        """
        by_user = sorted(leases, key=lambda lease: lease.user_sub)
        for _, group in groupby(by_user, key=lambda lease: lease.user_sub):
            mine = list(group)
            await self.queue.attempt(mine, self._embed(mine))

    async def _embed(self, leases: Sequence[Lease]) -> str:
        """Embeds memories of one user in one batch, or one by one if the embedder refuses the batch.

        A memory that cannot be decrypted is handed back alone. Returns the end for the log: "ready", "one by one", or
        "gone" if there is no key, or no text to embed.
        """
        user_sub, since, token = leases[0].user_sub, leases[0].claimed_at, leases[0].lease_token
        database = self.queue.database
        async with database.as_user(user_sub, since) as connection:
            words = await self.keyring.find(connection, user_sub)
            rows = (await connection.execute(sources(user_sub, [each.row_id for each in leases]))).all()
        if words is None:
            return "gone"
        texts, held = dict[UUID, str](), {each.row_id: each for each in leases}
        opened = await asyncio.to_thread(lambda: [_text(words, row) for row in rows])  # may be many megabytes
        for row, text in zip(rows, opened, strict=True):
            if isinstance(text, SealBroken):
                await self.queue.hand_back([held.pop(row.id)], text)
            else:
                texts[row.id] = text
        if not texts:
            return "gone"
        try:
            vectors = await embed_each(self.embedder, list(texts.values()))  # may take a while: in no transaction
        except (EmbedderRefused, EmbedderMisbehaved):
            if len(held) == 1:
                raise
            for each in held.values():  # the fault may be one text's, and must not be the others'
                await self.queue.attempt([each], self._embed([each]))
            return "one by one"
        async with database.as_user(user_sub, since) as connection:
            free = set(await connection.scalars(unlocked(user_sub, list(texts), token)))
            made = [
                {"memory_id": memory, "vector": None if vector is None else as_text(vector)}
                for memory, vector in zip(texts, vectors, strict=True)
                if memory in free
            ]
            if made:
                await connection.execute(finish(user_sub, token, self.embedder.model), made)
        return "ready"


def _text(words: Words, row: AnyRow) -> str | SealBroken:
    """Returns the text of a row of ``sources``, or the error if it was encrypted with another key, or changed."""
    try:
        if row.kind == "turn":
            return text_of_turn(words.open("turn", row.payload, row.session_id, row.turn_number))
        if row.kind == "fact":
            return searched(words.open("fact", row.words, row.fact_id)["text"])
        return searched(text_of(words.open("knowledge", row.entry_words, row.knowledge_id)))
    except SealBroken as error:
        return error


def unlocked(user_sub: str, memory_ids: Sequence[UUID], lease_token: UUID) -> Select[UUID]:
    """Returns a statement that selects and locks the memories that the lease holds, skipping those locked by others.

    A memory that another transaction has locked is about to be deleted with its session or fact. Waiting for it while
    holding locks on others could deadlock. If it is not deleted after all, it comes back when its lease ends.
    """
    mine = memories.c.user_sub == user_sub, memories.c.id.in_(memory_ids), memories.c.lease_token == lease_token
    return select(memories.c.id).where(*mine).order_by(memories.c.id).with_for_update(skip_locked=True)


def sources(user_sub: str, memory_ids: Sequence[UUID]) -> Rows:
    """Returns a statement that selects memories, each with its encrypted turn, fact or entry of knowledge."""
    turn = and_(
        turns.c.user_sub == memories.c.user_sub,
        turns.c.session_id == memories.c.session_id,
        turns.c.number == memories.c.turn_number,
    )
    fact = and_(facts.c.user_sub == memories.c.user_sub, facts.c.id == memories.c.fact_id)
    entry = and_(knowledge.c.user_sub == memories.c.user_sub, knowledge.c.id == memories.c.knowledge_id)
    columns = [memories.c[name] for name in ("id", "kind", "session_id", "turn_number", "fact_id", "knowledge_id")]
    return (
        select(*columns, turns.c.payload, facts.c.words, knowledge.c.words.label("entry_words"))
        .select_from(memories.outerjoin(turns, turn).outerjoin(facts, fact).outerjoin(knowledge, entry))
        .where(memories.c.user_sub == user_sub, memories.c.id.in_(memory_ids))
        .order_by(memories.c.id)
    )


def finish(user_sub: str, lease_token: UUID, model: str) -> Update:
    """Returns a statement that takes memories off the queue if the lease still holds, and stores their vectors.

    Its parameters for each memory are ``memory_id`` and ``vector``, a text; NULL: the memory has none.
    """
    row = update(memories).where(
        memories.c.user_sub == user_sub,
        memories.c.id == bindparam("memory_id", type_=Uuid),
        memories.c.lease_token == lease_token,
    )
    done = {"status": "ready", "attempts": 0, "lease_token": None, "last_error": None, "available_at": func.now()}
    made_by = case((bindparam("vector", type_=Text).is_not(None), literal(model)))
    return row.values(**done, embedding=stored_later("vector"), model=made_by)
