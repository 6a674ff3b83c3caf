"""Storage of facts: a repeated fact is counted, and a newer value closes the older one, which then points to the newer.

A slot is an attribute, or a taste, that has one value at a time.

Values are never overwritten: each value of a slot holds from its own time until the time of the next one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import ARRAY, LargeBinary, and_, any_, bindparam, insert, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import SealBroken
from retrieval.tables.kinds import FactOrigin, Speaker
from retrieval.tables.memories import facts
from writer.audit import Change, note
from writer.facts.draft import PLACES, FactDraft
from writer.memories import remember_facts
from writer.privacy.words import Words

_TIMES = ("valid_from", "valid_to", "superseded_by", "told", "last_told_at")
"""Columns of a fact that a later fact may change."""
_FROM_SOURCE = ["agent_key", "origin", "valid_from", "valid_to", "said_by", "session_id", "turn_number", "case_id"]


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


async def store_facts(
    connection: AsyncConnection, words: Words, agent_key: str, stated: Sequence[tuple[FactDraft, Provenance]]
) -> list[UUID]:
    """Stores the facts that a profile's user states, and ends those that the user takes back, in their order.

    Returns the ids of the stated facts. If an equal stored fact held at that time, the repetition is counted there, and
    that fact's id is returned. The caller must hold the profile's lock, so that of two contradicting facts the second
    sees the first.
    """
    if not stated:
        return []
    keys: list[tuple[bytes, bytes | None]] = []  # keyed hashes of each fact's words, and of its slot if it has one
    for draft, _ in stated:
        days = "" if draft.about is None else f"{draft.about.first}/{draft.about.last}"
        subject, told = (draft.kind, draft.subject), (draft.attribute, draft.value or draft.text, draft.unit, days)
        of_slot = words.hash_of_fact(*subject, draft.slot) if draft.slot else None
        keys.append((words.hash_of_fact(*subject, *told), of_slot))
    since = min(source.valid_from for _, source in stated)
    timeline = await _Timeline.read(connection, words, agent_key, keys, since)
    before = {held.id: replace(held) for held in timeline.facts}
    ids: list[UUID] = []
    fresh: list[tuple[_TimedFact, FactDraft, Provenance]] = []
    closed: list[Change] = []
    for (draft, source), (said, slot) in zip(stated, keys, strict=True):
        at = source.valid_from
        if draft.ends:
            ended = timeline.end(words, draft, said, slot, at)
            closed += [Change.of((words.user_sub, agent_key), source.actor, "close_fact", each) for each in ended]
            continue
        texts = {name: getattr(draft, name) for name in ("attribute", "value")}
        new = _TimedFact(uuids.uuid7(), said, slot, at, source.valid_to, None, 1, at, texts)
        ids.append(timeline.take(replace(new)))
        if ids[-1] == new.id:
            fresh.append((new, draft, source))
            before[new.id] = new
    await _insert(connection, words, fresh)
    changed = [
        {"owner": words.user_sub, "fact_id": held.id, **{f"new_{name}": getattr(held, name) for name in _TIMES}}
        for held in timeline.facts
        if before[held.id] != held
    ]
    if changed:
        columns = [facts.c[name] for name in _TIMES]
        mine = facts.c.user_sub == bindparam("owner"), facts.c.id == bindparam("fact_id")
        values = {column: bindparam(f"new_{column.name}", type_=column.type) for column in columns}
        await connection.execute(update(facts).where(*mine).values(values), changed)
    await note(connection, *closed)
    return ids


@dataclass(slots=True)
class _TimedFact:
    """A stored or new fact: the time for which it holds, how often the user stated it, and its attribute and value.

    Attributes:
        texts: the attribute and the value; those of a stored fact are still sealed.
    """

    id: UUID
    said: bytes
    slot: bytes | None
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: UUID | None
    told: int
    last_told_at: datetime
    texts: Mapping[str, str] | bytes

    def holds(self, at: datetime) -> bool:
        """Returns whether the fact had not ended at that time."""
        return self.valid_to is None or self.valid_to > at


@dataclass(slots=True)
class _Timeline:
    """The facts that equal stated ones or have their slots, found by either."""

    facts: list[_TimedFact] = field(default_factory=list)
    _by_said: defaultdict[bytes, list[_TimedFact]] = field(default_factory=lambda: defaultdict(list))
    _by_slot: defaultdict[bytes | None, list[_TimedFact]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    async def read(
        cls,
        connection: AsyncConnection,
        words: Words,
        agent_key: str,
        keys: Sequence[tuple[bytes, bytes | None]],
        since: datetime,
    ) -> Self:
        """Returns the stored facts with one of these hashes, and those in one of these slots that had not ended then."""
        names = ("id", "said", "slot", *_TIMES, "words")
        hashes = ARRAY(LargeBinary)  # an array is one parameter; a list has one for each, and a statement 32,767
        known = select(*(facts.c[name] for name in names)).where(
            facts.c.user_sub == words.user_sub,
            facts.c.agent_key == agent_key,
            or_(
                facts.c.said == any_(literal([said for said, _ in keys], hashes)),
                and_(
                    facts.c.slot == any_(literal([slot for _, slot in keys if slot is not None], hashes)),
                    or_(facts.c.valid_to.is_(None), facts.c.valid_to > since),
                ),
            ),
        )
        timeline = cls()
        for row in await connection.execute(known):
            timeline.add(_TimedFact(*row))
        return timeline

    def add(self, fact: _TimedFact) -> None:
        """Adds a fact as it is."""
        self.facts.append(fact)
        self._by_said[fact.said].append(fact)
        self._by_slot[fact.slot].append(fact)

    def take(self, fact: _TimedFact) -> UUID:
        """Counts a fact as a repeat of an equal one, or adds it, which closes others of its slot; returns its id.

        A repeat with an earlier end than the equal fact ends the equal fact then, unless that was told again since.
        Without a slot, an equal fact counts also if it begins later, but before the fact's end.
        """
        at, end = fact.valid_from, fact.valid_to
        equal = [
            held
            for held in self._by_said[fact.said]
            if held.holds(at)
            and (held.valid_from <= at or (held.slot is None and (end is None or end > held.valid_from)))
        ]
        if equal:
            held = min(equal, key=_begin)
            if end is not None and held.holds(end) and held.last_told_at <= end:
                held.valid_to, held.superseded_by = end, None
            held.told += 1
            held.last_told_at = max(held.last_told_at, at)
            held.valid_from = min(held.valid_from, at)
            return held.id
        same_slot = [] if fact.slot is None else self._by_slot[fact.slot]
        later = min((held for held in same_slot if held.valid_from > at), key=_begin, default=None)
        if later is not None and (fact.valid_to is None or fact.valid_to > later.valid_from):
            fact.valid_to, fact.superseded_by = later.valid_from, later.id
        for held in same_slot:
            if held.valid_from <= at and held.holds(at):
                held.valid_to, held.superseded_by = at, fact.id
        self.add(fact)
        return fact.id

    def end(self, words: Words, draft: FactDraft, said: bytes, slot: bytes | None, at: datetime) -> list[UUID]:
        """Closes the facts that a user takes back, if they held at that time and were not told again since.

        A place that was once stated in these very words is no other one: "Paris, Texas" is then not "Paris". Returns
        the ids of the closed facts.
        """
        closed: list[UUID] = []
        exactly = slot is None or (draft.attribute in PLACES and self._by_said[said])
        for held in self._by_said[said] if exactly else self._by_slot[slot]:
            if not (held.valid_from <= at and held.holds(at) and held.last_told_at <= at):
                continue
            try:
                texts = words.open("fact", held.texts, held.id) if isinstance(held.texts, bytes) else held.texts
            except SealBroken:  # a fact that cannot be read may be another one
                continue
            if draft.takes_back(texts):
                held.valid_to, held.superseded_by = at, None
                closed.append(held.id)
        return closed


def _begin(held: _TimedFact) -> tuple[datetime, UUID]:
    return held.valid_from, held.id


async def _insert(
    connection: AsyncConnection, words: Words, fresh: Sequence[tuple[_TimedFact, FactDraft, Provenance]]
) -> None:
    """Inserts facts with their search entries and audit entries."""
    if not fresh:
        return
    rows = []
    for new, draft, source in fresh:
        texts = {name: getattr(draft, name) for name in ("text", "subject", "attribute", "value", "unit")}
        rows.append(
            {
                **{name: getattr(source, name) for name in _FROM_SOURCE},
                "user_sub": words.user_sub,
                "id": new.id,
                "kind": draft.kind,
                "category": draft.category,
                "key_id": words.key_id,
                "slot": new.slot,
                "said": new.said,
                "about_from": draft.about and draft.about.first,
                "about_to": draft.about and draft.about.last,
                "last_told_at": source.valid_from,
                "words": words.seal("fact", texts, new.id),
            }
        )
    await connection.execute(insert(facts), rows)
    entries = [(source.agent_key, new.id, draft.text) for new, draft, source in fresh]
    await remember_facts(connection, words.user_sub, entries)
    changes = [
        Change.of((words.user_sub, source.agent_key), source.actor, "insert_fact", new.id, kind=draft.kind)
        for new, draft, source in fresh
    ]
    await note(connection, *changes)
