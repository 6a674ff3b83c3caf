"""Verifies a user's audit chain, from its start or its last seal up to the first manipulated entry."""

import hmac
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import Column, CompoundSelect, Label, RowMapping, Text, cast, func, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.tables.audit import audit, audit_heads, audit_links, erasure_heads, erasures
from writer.audit.signing import TOMBSTONE, AuditKey, entry_content, genesis, key_of, link_hash

PAGE = 1_000

COMMITTED_WITHIN = timedelta(minutes=5)
"""Longest time from the making of an entry to its commit; an entry older than a sealing by more was sealed by it."""

_FIRST, _NEVER = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
_BY_TIME = 7
_LAST_MILLIS = _NEVER.timestamp() * 1000


@dataclass(frozen=True, slots=True)
class Fault:
    """The first fault of an audit chain.

    Attributes:
        seq: number of the link; None for an entry without a link.
        entry_id: id of the entry; None if it is unknown.
    """

    seq: int | None
    entry_id: UUID | None
    what: str


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of verifying a user's audit chain.

    Attributes:
        seq: number of the last verified link.
        hash: hash of that link.
        sealed_seq: number of the last sealed link; see ``seal_all``.
        pruned: number and hash of the last pruned link.
        fault: the first fault; None if the chain is intact.
    """

    user_sub: str
    seq: int
    hash: bytes
    sealed_seq: int = 0
    pruned: tuple[int, bytes | None] = (0, None)
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Erasures:
    """The erasures of all users at one time, by which chains of that time and later are verified.

    Attributes:
        users: digests of the names of the erased users.
        seal: the seal of the erasures, which has the time of the last sealing of all chains; None: it is missing.
    """

    users: set[str]
    seal: bytes | None


@dataclass(slots=True)
class _Walk:
    """A walk along a user's audit chain, link by link.

    Attributes:
        head: row of ``audit_heads``: the chain's last link, its seal, and its last pruned link.
        seq: number of the last verified link.
        hash: hash of that link.
        sealed_hash: hash of the sealed link, once the walk has passed it.
        oldest: time of the oldest entry that was passed, by its id.
    """

    head: RowMapping
    key: AuditKey | None
    seq: int
    hash: bytes
    sealed_hash: bytes | None = None
    oldest: datetime = _NEVER

    def step(self, row: RowMapping, erased: set[str]) -> Fault | None:
        """Verifies the next link and its entry, which may be missing if in ``erased``; returns the fault, or None."""
        seq, entry_id = row["seq"], row["entry_id"]
        if seq != self.seq + 1:
            return Fault(self.seq + 1, None, f"the entry is missing: {seq} follows {self.seq}")
        if row["id"] is None:
            return Fault(seq, entry_id, "the entry was deleted")
        self.hash = link_hash(self.hash, seq, entry_content(dict(row)))
        if not hmac.compare_digest(self.hash, row["hash"]):
            return Fault(seq, entry_id, "the entry was changed, put elsewhere, or put in")
        if wrong := self._signature(row):
            return Fault(seq, entry_id, wrong)
        tombstone = TOMBSTONE.fullmatch(row["actor"])
        if tombstone is not None and tombstone[1] not in erased:
            return Fault(seq, entry_id, "the actor was replaced, and never erased")
        self.seq = seq
        self.oldest = min(self.oldest, _made_at(entry_id))
        if seq == self.head["sealed_seq"]:
            self.sealed_hash = self.hash
        return None

    def end(self, sealing: bytes | None) -> Fault | None:
        """Returns the fault at the end of the chain or in its seal, or None; ``sealing``: seal of the erasures."""
        if self.seq != self.head["seq"] or self.hash != self.head["hash"]:
            return Fault(self.seq + 1, None, f"the end was cut: the head says {self.head['seq']} entries")
        if self.key is None:
            return None
        sealed_seq, pruned = self.head["sealed_seq"], _pruned(self.head)
        if self.head["seal"] is None:
            if pruned[0]:
                return Fault(1, None, "the start is gone, and no seal speaks for it")
            # a chain that is newer than the last sealing of all chains has no seal yet
            sealed_at = (sealing and self.key.sealed_at(sealing)) or datetime.now(UTC)
            is_new = not sealed_seq and self.oldest >= sealed_at - COMMITTED_WITHIN
            return None if is_new else Fault(sealed_seq or 1, None, "no seal speaks for it: its seal was removed")
        if self.sealed_hash is None:
            return Fault(sealed_seq, None, "the seal is of an entry that is not there")
        seal = self.key.seal(self.head["user_sub"], sealed_seq, self.sealed_hash, pruned)
        what = f"the chain was linked anew: the seal of entry {sealed_seq} is broken"
        return None if hmac.compare_digest(seal, self.head["seal"]) else Fault(None, None, what)

    def _signature(self, row: RowMapping) -> str | None:
        """Checks the MAC of an entry and returns the fault, or None."""
        if self.key is None:
            return None
        if row["mac"] is None:
            return "the entry is not signed: casebank did not write it"
        try:
            is_ours = hmac.compare_digest(self.key.entry(dict(row)), row["mac"])
        except RecursionError:  # nested deeper than any payload of casebank
            is_ours = False
        return None if is_ours else "the entry's signature is false: casebank did not write it"


def _pruned(head: RowMapping) -> tuple[int, bytes | None]:
    return head["pruned_seq"], head["pruned_hash"]


async def verify_user(database: Database, user_sub: str, erasures: Erasures, *, since_seal: bool = False) -> Verified:
    """Verifies the audit chain of a user in one snapshot of the database.

    ``since_seal``: begin at the last sealed link. The erasures may be older than the snapshot: if a fault is found,
    which may be an actor who was erased since, the chain is verified by those of now.

    Raises:
        UserErased: the user was erased, and the chain with the user.
    """
    chain = await _verify(database, user_sub, erasures, since_seal=since_seal)
    if chain.fault is None:
        return chain
    return await _verify(database, user_sub, await read_erasures(database), since_seal=since_seal)


async def _verify(database: Database, user_sub: str, erasures: Erasures, *, since_seal: bool) -> Verified:
    as_it_stands = database.engine.execution_options(isolation_level="REPEATABLE READ")
    entries, links = audit.c.user_sub == user_sub, audit_links.c.user_sub == user_sub
    async with replace(database, engine=as_it_stands).as_user(user_sub, datetime.now(UTC)) as connection:
        its_head = select(audit_heads).where(audit_heads.c.user_sub == user_sub)
        head = (await connection.execute(its_head)).mappings().one_or_none()
        if head is None:
            anything = select(audit.c.id).where(entries).union_all(select(audit_links.c.entry_id).where(links)).limit(1)
            stray = await connection.scalar(anything)
            what = "there are entries, and the head of their chain is gone"
            return Verified(user_sub, 0, genesis(user_sub), fault=None if stray is None else Fault(None, stray, what))
        # the stored links begin after the last pruned one
        seq, start = head["pruned_seq"], genesis(user_sub) if head["pruned_hash"] is None else head["pruned_hash"]
        if since_seal:
            last_sealed = select(audit_links.c.hash).where(links, audit_links.c.seq == head["sealed_seq"])
            if (sealed := await connection.scalar(last_sealed)) is not None:
                seq, start = head["sealed_seq"], sealed
        walk = _Walk(head, key_of(database.engine), seq, start, start if seq == head["sealed_seq"] else None)
        fault = await _walk_to_end(connection, walk, erasures)
        if fault is None:
            later = select(audit_links.c.entry_id).where(links, audit_links.c.seq > walk.seq)
            if (beyond := await connection.scalar(later.order_by(audit_links.c.seq).limit(1))) is not None:
                fault = Fault(walk.seq + 1, beyond, "the head was put back: there are later links")
        if fault is None:
            linked = select(audit_links.c.seq).where(links, audit_links.c.entry_id == audit.c.id)
            unlinked = select(audit.c.id).where(entries, ~linked.exists()).order_by(audit.c.id).limit(1)
            if (stray := await connection.scalar(unlinked)) is not None:
                fault = Fault(None, stray, "the entry is on no chain: it was put in")
        return Verified(user_sub, walk.seq, walk.hash, head["sealed_seq"], _pruned(head), fault)


def _made_at(entry_id: UUID) -> datetime:
    """Returns the time in the id of an entry, a UUIDv7; the end of all time for another id."""
    millis = entry_id.int >> 80
    if entry_id.version != _BY_TIME or millis > _LAST_MILLIS:
        return _NEVER
    return datetime.fromtimestamp(millis / 1000, UTC)


async def _walk_to_end(connection: AsyncConnection, walk: _Walk, erasures: Erasures) -> Fault | None:
    """Verifies all links up to the head, page by page, and the seal; returns the first fault, or None."""
    while True:
        statement = page(walk.head["user_sub"], walk.seq, walk.head["seq"])
        rows = (await connection.execute(statement)).mappings().all()
        for row in rows:
            if fault := walk.step(row, erasures.users):
                return fault
        if len(rows) < PAGE:
            return walk.end(erasures.seal)


def page(user_sub: str, after: int, until: int) -> Rows:
    """Returns the statement that selects the next PAGE links of a chain, each with its entry, or nulls if deleted."""
    entry = (audit.c.id, audit.c.agent_key, audit.c.actor, audit.c.action, audit.c.subject_id, audit.c.mac)
    joined = audit_links.outerjoin(
        audit, (audit.c.user_sub == audit_links.c.user_sub) & (audit.c.id == audit_links.c.entry_id)
    )
    link = (audit_links.c.user_sub, audit_links.c.seq, audit_links.c.entry_id, audit_links.c.hash)
    return (
        select(*link, *entry, readable(audit.c.created_at), cast(audit.c.payload, Text).label("payload"))
        .select_from(joined)
        .where(audit_links.c.user_sub == user_sub, audit_links.c.seq > after, audit_links.c.seq <= until)
        .order_by(audit_links.c.seq)
        .limit(PAGE)
    )


def readable(time: Column[datetime]) -> Label[datetime]:
    """Returns a column of times, with those that only a forger puts in, and Python cannot hold, moved to a bound."""
    return func.least(func.greatest(time, _FIRST), _NEVER, type_=time.type).label(time.name)


def everybody() -> CompoundSelect[str]:
    """Returns the statement that selects, in the worker's role, all users with an audit chain or parts of one."""
    parts = (select(table.c.user_sub) for table in (audit_heads, audit_links, audit))
    return union(*parts).order_by("user_sub")


async def read_erasures(database: Database) -> Erasures:
    """Returns the erasures of all users that the database has now."""
    async with database.as_worker() as connection:
        users = {row.user_sub for row in await connection.execute(tombstones())}
        return Erasures(users, await connection.scalar(select(erasure_heads.c.seal)))


def tombstones() -> Rows:
    """Returns the statement that selects, in the worker's role, the digest and time of each user's erasure."""
    return select(erasures.c.user_sub, readable(erasures.c.erased_at)).order_by(
        erasures.c.erased_at, erasures.c.user_sub
    )
