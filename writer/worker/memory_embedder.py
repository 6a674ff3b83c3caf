"""Gives memories their vectors: takes those that wait off the queue, opens what they say, and embeds it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from uuid import UUID

from sqlalchemy import Select, Update, and_, func, select, update

from retrieval.database.database import Database
from retrieval.database.rows import AnyRow, Rows
from retrieval.errors import CasebankError, DatabaseUnavailable, EmbedderMisbehaved, EmbedderRefused, UserErased
from retrieval.ports import Embedder, Vector, embed_each
from retrieval.recall.knowledge import text_of
from retrieval.tables.facts import facts
from retrieval.tables.knowledge import knowledge
from retrieval.tables.memories import memories
from retrieval.tables.sessions import turns
from retrieval.telemetry import log
from writer.memories import searched, text_of_turn
from writer.privacy.keys import Keyring
from writer.privacy.words import Words
from writer.vectors import stored
from writer.worker import queue
from writer.worker.claims import Claims, Leased

BATCH = 256
"""Memories that are embedded at a time."""


@dataclass(slots=True)
class MemoryEmbedder:
    """Embeds memories for the worker; users take turns as with cases."""

    database: Database
    embedder: Embedder
    keyring: Keyring
    lease: timedelta
    max_attempts: int
    backoff_s: float
    backoff_max_s: float
    rng: random.Random
    claims: Claims = field(init=False)

    def __post_init__(self) -> None:
        """Takes memories off their queue."""
        self.claims = Claims(self.database, memories, self.lease, self.max_attempts)

    async def run_once(self, batch: int = BATCH) -> int:
        """Gives up to so many memories their vectors; returns how many there were, whatever became of them.

        Raises:
            DatabaseUnavailable: those claimed come back when their lease ends.
        """
        claims = await self.claims.take(batch)
        by_user = sorted(claims, key=lambda held: held.user_sub)
        for user_sub, held in groupby(by_user, key=lambda held: held.user_sub):
            await self._serve(user_sub, list(held))
        return len(claims)

    async def _serve(self, user_sub: str, held: Sequence[Leased]) -> None:
        """Embeds the memories of one user together, and each by itself where that was refused."""
        try:
            await self._embed(user_sub, held)
        except UserErased:
            return
        except DatabaseUnavailable:
            raise
        except (EmbedderRefused, EmbedderMisbehaved) as error:
            if len(held) > 1:  # the fault may be one text's, and must not be the others'
                for each in held:
                    await self._serve(user_sub, [each])
                return
            await self._hand_back(held, error)
        except Exception as error:  # noqa: BLE001 - one user's memories must not stop those behind them
            await self._hand_back(held, error)

    async def _embed(self, user_sub: str, held: Sequence[Leased]) -> None:
        since = held[0].claimed_at
        texts = await self._texts(user_sub, held, since)
        vectors = await embed_each(self.embedder, list(texts.values()))  # outside any transaction: it may take a while
        token = held[0].lease_token
        async with self.database.as_user(user_sub, since) as connection:
            free = set(await connection.scalars(unlocked(user_sub, list(texts), token)))
            for memory_id, vector in zip(texts, vectors, strict=True):
                if memory_id in free:
                    await connection.execute(finish(user_sub, memory_id, token, self.embedder.model, vector))

    async def _texts(self, user_sub: str, held: Sequence[Leased], since: datetime) -> dict[UUID, str]:
        async with self.database.as_user(user_sub, since) as connection:
            key = await self.keyring.find(connection, user_sub)
            rows = (await connection.execute(sources(user_sub, [each.row_id for each in held]))).all()
        if key is None:
            return {}
        words = Words(user_sub, key)
        return {row.id: _text(words, row) for row in rows}

    async def _hand_back(self, held: Sequence[Leased], error: Exception) -> None:
        """Queues them again; one that the embedder refuses for good is found by its words alone."""
        name = type(error).__name__  # alone: a message could quote what the user said
        async with self.database.as_worker() as connection:
            for each in held:
                dead = each.attempts >= self.max_attempts and not _is_outage(error)
                delay = queue.backoff(each.attempts, self.backoff_s, self.backoff_max_s, self.rng)
                await connection.execute(queue.hand_back(each, name, delay, dead=dead, queue=memories))
        log.warning("memories.embed_failed", error=name, memories=len(held))


def _text(words: Words, row: AnyRow) -> str:
    """Returns what the memory says, as it is searched."""
    if row.kind == "turn":
        return text_of_turn(words.open_turn(row.session_id, row.turn_number, row.payload))
    if row.kind == "fact":
        return searched(words.open_fact(row.fact_id, row.words)["text"])
    return searched(text_of(words.open_knowledge(row.knowledge_id, row.entry_words)))


def _is_outage(error: Exception) -> bool:
    """Returns whether the embedder is away: then trying again is no fault of the text."""
    return isinstance(error, CasebankError) and not isinstance(error, EmbedderRefused | EmbedderMisbehaved)


def unlocked(user_sub: str, memory_ids: Sequence[UUID], lease_token: UUID) -> Select[UUID]:
    """Returns the statement that locks those of the memories that are still held and that nobody else has locked.

    The others are about to go with their session or fact: whoever waited for one while holding another could be waited
    for in turn. One that stays after all comes back when its lease ends.
    """
    mine = memories.c.user_sub == user_sub, memories.c.id.in_(memory_ids), memories.c.lease_token == lease_token
    return select(memories.c.id).where(*mine).order_by(memories.c.id).with_for_update(skip_locked=True)


def sources(user_sub: str, memory_ids: Sequence[UUID]) -> Rows:
    """Returns the statement for what the memories are of, sealed."""
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


def finish(user_sub: str, memory_id: UUID, lease_token: UUID, model: str, vector: Vector | None) -> Update:
    """Returns the statement that takes a memory off the queue with its vector, if it has one, while the lease holds."""
    row = update(memories).where(
        memories.c.user_sub == user_sub, memories.c.id == memory_id, memories.c.lease_token == lease_token
    )
    made = {} if vector is None else {"model": model, "embedding": stored(vector.tolist())}
    return row.values(status="ready", attempts=0, lease_token=None, last_error=None, available_at=func.now(), **made)
