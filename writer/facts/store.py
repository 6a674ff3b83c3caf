"""Storage of facts: a repeated fact is counted, and a newer value closes the older one, which then points to it.

Values are never overwritten: each value of a slot holds from its own time until the time of the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import ColumnElement, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.rows import Rows
from retrieval.tables.facts import facts
from retrieval.tables.kinds import FactOrigin, Speaker
from writer.audit import Change, note
from writer.facts.extract import FactDraft
from writer.memories import remember_fact
from writer.privacy.words import Words


@dataclass(frozen=True, slots=True)
class Provenance:
    """Source of a fact, and the time for which it holds.

    Attributes:
        actor: the author, for the audit.
        valid_from: beginning of the fact; for a fact from a turn, the time of the turn.
        valid_to: end of the fact; None while it holds.
    """

    agent_key: str
    actor: str
    origin: FactOrigin
    valid_from: datetime
    valid_to: datetime | None = None
    said_by: Speaker = "user"
    session_id: UUID | None = None
    turn_number: int | None = None
    case_id: UUID | None = None


async def store_fact(connection: AsyncConnection, words: Words, draft: FactDraft, source: Provenance) -> UUID:
    """Stores a fact, or counts it on an equal fact that held at that time; returns the id.

    The caller must hold the profile's lock, so that of two contradicting facts the second sees the first.
    """
    mine = facts.c.user_sub == words.user_sub, facts.c.agent_key == source.agent_key
    days = "" if draft.about is None else f"{draft.about.first}/{draft.about.last}"
    parts = draft.kind, draft.subject, draft.attribute
    said = words.hash_of_fact(*parts, draft.value or draft.text, draft.unit, days)
    slot = words.hash_of_fact(*parts) if draft.single else None
    known: UUID | None = await connection.scalar(held_then(mine, said, source.valid_from))
    if known is not None:
        earlier = update(facts).where(facts.c.user_sub == words.user_sub, facts.c.id == known)
        await connection.execute(
            earlier.values(
                told=facts.c.told + 1,
                last_told_at=func.greatest(facts.c.last_told_at, source.valid_from),
                valid_from=func.least(facts.c.valid_from, source.valid_from),
            )
        )
        return known
    fact_id = uuids.uuid7()
    row = {
        "user_sub": words.user_sub,
        "id": fact_id,
        "agent_key": source.agent_key,
        "kind": draft.kind,
        "category": draft.category,
        "key_id": words.key_id,
        "slot": slot,
        "said": said,
        "about_from": None if draft.about is None else draft.about.first,
        "about_to": None if draft.about is None else draft.about.last,
        "origin": source.origin,
        "said_by": source.said_by,
        "session_id": source.session_id,
        "turn_number": source.turn_number,
        "case_id": source.case_id,
        "last_told_at": source.valid_from,
        "valid_from": source.valid_from,
        "valid_to": source.valid_to,
    }
    texts = {name: getattr(draft, name) for name in ("text", "subject", "attribute", "value", "unit")}
    later = None if slot is None else (await connection.execute(next_of(mine, slot, source.valid_from))).first()
    if later is not None and (source.valid_to is None or source.valid_to > later.valid_from):
        row |= {"valid_to": later.valid_from, "superseded_by": later.id}
    await connection.execute(insert(facts).values({**row, "words": words.seal_fact(fact_id, texts)}))
    await remember_fact(connection, words.user_sub, source.agent_key, fact_id, draft.text)
    if slot is not None:
        at = source.valid_from
        held = facts.c.valid_from <= at, func.coalesce(facts.c.valid_to > at, True)
        older = update(facts).where(*mine, facts.c.slot == slot, facts.c.id != fact_id, *held)
        await connection.execute(older.values(valid_to=at, superseded_by=fact_id))
    owner = words.user_sub, source.agent_key
    await note(connection, Change.of(owner, source.actor, "insert_fact", fact_id, kind=draft.kind))
    return fact_id


def held_then(mine: Sequence[ColumnElement[bool]], said: bytes, at: datetime) -> Rows:
    """Returns the statement for the fact with this hash that held at that time; without a slot, also at a later time."""
    return (
        select(facts.c.id)
        .where(*mine, facts.c.said == said, func.coalesce(facts.c.valid_to > at, True))
        .where(or_(facts.c.slot.is_(None), facts.c.valid_from <= at))
        .order_by(facts.c.valid_from, facts.c.id)
        .limit(1)
    )


def next_of(mine: Sequence[ColumnElement[bool]], slot: bytes, at: datetime) -> Rows:
    """Returns the statement for the first value of the slot that begins to hold after that time."""
    later = select(facts.c.id, facts.c.valid_from).where(*mine, facts.c.slot == slot, facts.c.valid_from > at)
    return later.order_by(facts.c.valid_from, facts.c.id).limit(1)
