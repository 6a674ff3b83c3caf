"""Storage of facts: a repeated fact is counted, and a newer value closes the older one, which then points to the newer.

A slot is an attribute, or a taste, that has one value at a time.

Values are never overwritten: each value of a slot holds from its own time until the time of the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import bindparam, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import SealBroken
from retrieval.tables.kinds import FactOrigin, Speaker
from retrieval.tables.memories import facts
from writer.audit import Change, note
from writer.facts.extract import FactDraft
from writer.memories import remember_facts
from writer.privacy.words import Words

_TIMES = ("valid_from", "valid_to", "superseded_by", "told", "last_told_at")
"""Columns of a fact that a later fact may change."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Source of a fact, and the time for which it holds.

    Attributes:
        actor: the author of the fact, as the audit names it.
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


async def apply_facts(
    connection: AsyncConnection, words: Words, agent_key: str, stated: Sequence[tuple[FactDraft, Provenance]]
) -> None:
    """Stores the facts that a profile's user states, and ends those that the user takes back, in their order.

    The caller must hold the profile's lock, so that of two contradicting facts the second sees the first.
    """
    waiting: list[tuple[FactDraft, Provenance]] = []
    for draft, source in stated:
        if draft.ends:
            await store_facts(connection, words, agent_key, waiting)
            waiting = []
            await _end(connection, words, draft, source)
        else:
            waiting.append((draft, source))
    await store_facts(connection, words, agent_key, waiting)


async def store_facts(
    connection: AsyncConnection, words: Words, agent_key: str, stated: Sequence[tuple[FactDraft, Provenance]]
) -> list[UUID]:
    """Stores facts of one profile in their order, and returns their ids.

    If an equal stored fact held at that time, the repetition is counted there, and that fact's id is returned. The
    caller must hold the profile's lock.
    """
    if not stated:
        return []
    keys = [(_said(words, draft), _slot(words, draft)) for draft, _ in stated]
    names = ("id", "said", "slot", "valid_from", "valid_to", "superseded_by", "told", "last_told_at")
    known = select(*(facts.c[name] for name in names)).where(
        facts.c.user_sub == words.user_sub,
        facts.c.agent_key == agent_key,
        or_(
            facts.c.said.in_({said for said, _ in keys}),
            facts.c.slot.in_({slot for _, slot in keys if slot is not None}),
        ),
    )
    timeline = [_TimedFact(*row) for row in await connection.execute(known)]
    stored = {held.id: replace(held) for held in timeline}
    ids: list[UUID] = []
    fresh: list[tuple[UUID, FactDraft, Provenance]] = []
    for (draft, source), (said, slot) in zip(stated, keys, strict=True):
        new = _TimedFact(uuids.uuid7(), said, slot, source.valid_from, source.valid_to, None, 1, source.valid_from)
        ids.append(_take(timeline, replace(new)))
        if ids[-1] == new.id:
            fresh.append((new.id, draft, source))
            stored[new.id] = new
    await _insert(connection, words, fresh)
    changed = [{"owner": words.user_sub, **held.columns()} for held in timeline if stored[held.id] != held]
    if changed:
        columns = [facts.c[name] for name in _TIMES]
        mine = facts.c.user_sub == bindparam("owner"), facts.c.id == bindparam("fact_id")
        values = {column: bindparam(f"new_{column.name}", type_=column.type) for column in columns}
        await connection.execute(update(facts).where(*mine).values(values), changed)
    return ids


@dataclass(slots=True)
class _TimedFact:
    """A stored or new fact: the time for which it holds, and how often the user stated it."""

    id: UUID
    said: bytes
    slot: bytes | None
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: UUID | None
    told: int
    last_told_at: datetime

    def holds(self, at: datetime) -> bool:
        """Returns whether the fact had not ended at that time."""
        return self.valid_to is None or self.valid_to > at

    def columns(self) -> dict[str, object]:
        """Returns the parameters of a change."""
        return {"fact_id": self.id, **{f"new_{name}": getattr(self, name) for name in _TIMES}}


def _take(timeline: list[_TimedFact], fact: _TimedFact) -> UUID:
    """Counts a fact as a repeat of an equal fact in the timeline, or adds it, which closes others; returns its id.

    Without a slot, an equal fact counts also if it holds at a later time alone.
    """
    at, slot = fact.valid_from, fact.slot
    first = sorted(timeline, key=lambda held: (held.valid_from, held.id))
    for held in first:
        if held.said == fact.said and held.holds(at) and (held.slot is None or held.valid_from <= at):
            held.told += 1
            held.last_told_at = max(held.last_told_at, at)
            held.valid_from = min(held.valid_from, at)
            return held.id
    if slot is not None:
        later = next((held for held in first if held.slot == slot and held.valid_from > at), None)
        if later is not None and (fact.valid_to is None or fact.valid_to > later.valid_from):
            fact.valid_to, fact.superseded_by = later.valid_from, later.id
        for held in timeline:
            if held.slot == slot and held.valid_from <= at and held.holds(at):
                held.valid_to, held.superseded_by = at, fact.id
    timeline.append(fact)
    return fact.id


async def _insert(
    connection: AsyncConnection, words: Words, fresh: Sequence[tuple[UUID, FactDraft, Provenance]]
) -> None:
    """Inserts facts with their search entries and audit entries."""
    if not fresh:
        return
    rows = []
    for fact_id, draft, source in fresh:
        texts = {name: getattr(draft, name) for name in ("text", "subject", "attribute", "value", "unit")}
        rows.append(
            {
                "user_sub": words.user_sub,
                "id": fact_id,
                "agent_key": source.agent_key,
                "kind": draft.kind,
                "category": draft.category,
                "key_id": words.key_id,
                "slot": _slot(words, draft),
                "said": _said(words, draft),
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
                "words": words.seal("fact", texts, fact_id),
            }
        )
    await connection.execute(insert(facts), rows)
    entries = [(source.agent_key, fact_id, draft.text) for fact_id, draft, source in fresh]
    await remember_facts(connection, words.user_sub, entries)
    changes = [
        Change.of((words.user_sub, source.agent_key), source.actor, "insert_fact", fact_id, kind=draft.kind)
        for fact_id, draft, source in fresh
    ]
    await note(connection, *changes)


async def _end(connection: AsyncConnection, words: Words, draft: FactDraft, source: Provenance) -> None:
    """Closes the facts that a user takes back, if they held at that time and were not told again since."""
    at, slot = source.valid_from, _slot(words, draft)
    said = words.hash_of_fact(draft.kind, draft.subject, draft.attribute, draft.value or draft.text, draft.unit, "")
    rows = await connection.execute(
        select(facts.c.id, facts.c.words).where(
            facts.c.user_sub == words.user_sub,
            facts.c.agent_key == source.agent_key,
            facts.c.said == said if slot is None else facts.c.slot == slot,
            facts.c.valid_from <= at,
            func.coalesce(facts.c.valid_to > at, True),
            facts.c.last_told_at <= at,
        )
    )
    owner = words.user_sub, source.agent_key
    for row in rows.all():
        try:
            held = words.open("fact", row.words, row.id)
        except SealBroken:  # a fact that cannot be read may be another one
            continue
        if draft.takes_back(held):
            ended = update(facts).where(facts.c.user_sub == words.user_sub, facts.c.id == row.id)
            await connection.execute(ended.values(valid_to=at, superseded_by=None))
            await note(connection, Change.of(owner, source.actor, "close_fact", row.id))


def _said(words: Words, draft: FactDraft) -> bytes:
    """Returns the keyed hash of the fact's words, by which a repeat is known."""
    days = "" if draft.about is None else f"{draft.about.first}/{draft.about.last}"
    return words.hash_of_fact(draft.kind, draft.subject, draft.attribute, draft.value or draft.text, draft.unit, days)


def _slot(words: Words, draft: FactDraft) -> bytes | None:
    """Returns the keyed hash of the fact's slot, see ``FactDraft.slot``; None: it has no slot."""
    return words.hash_of_fact(draft.kind, draft.subject, draft.slot) if draft.slot else None
