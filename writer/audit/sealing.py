"""Sealing and pruning of the chains: a seal is put on no link that does not follow from what was sealed before."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Delete, Select, Update, delete, func, select, update

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import UserErased
from retrieval.tables.audit import audit, audit_heads, audit_links
from writer.audit.signing import AuditKey, key_of
from writer.audit.tombstone_chain import Tombstones, seal_tombstones
from writer.audit.verify import Verified, tombstones, verify_user


@dataclass(frozen=True, slots=True)
class Sealed:
    """How many chains were sealed anew, and those that do not hold: they keep the seal that they have."""

    sealed: int
    broken: list[Verified]
    tombstones: Tombstones


async def seal_all(database: Database) -> Sealed:
    """Seals every chain that grew since its last seal, if all of it holds.

    Whoever can write to the database, and has not the master key, can from then on neither take an entry out nor put
    one elsewhere without breaking the seal.
    """
    key = _key(database)
    async with database.as_worker() as connection:
        grown = list((await connection.scalars(unsealed())).all())
        erased = {row.user_sub for row in await connection.execute(tombstones())}
    sealed = 0
    broken: list[Verified] = []
    for user_sub in grown:
        with suppress(UserErased):  # since the list was made
            found = await verify_user(database, user_sub, erased, since_seal=True)
            if found.fault is not None:
                broken.append(found)
            else:
                sealed += await _seal(database, found, key)
    return Sealed(sealed, broken, await seal_tombstones(database, key))


async def _seal(database: Database, found: Verified, key: AuditKey) -> int:
    seal = key.seal(found.user_sub, found.seq, found.hash, found.pruned)
    async with database.as_user(found.user_sub, datetime.now(UTC)) as connection:
        return (await connection.execute(put_seal(found, seal))).rowcount


async def prune_audit(database: Database, user_sub: str, before: datetime) -> int:
    """Deletes the user's entries from before that time, as far as the chain holds, and returns how many.

    What is left can be verified as before: the seal keeps the number and the hash of the last entry that is gone.

    Raises:
        UserErased: there is nothing left to prune.
        AuditBroken: the chain does not hold; nothing was deleted.
    """
    key = _key(database)
    async with database.as_worker() as connection:
        erased = {row.user_sub for row in await connection.execute(tombstones())}
    found = await verify_user(database, user_sub, erased)
    if found.fault is not None:
        raise AuditBroken(found)
    async with database.as_user(user_sub, datetime.now(UTC)) as connection:
        last = (await connection.execute(last_before(user_sub, before, found.seq))).one_or_none()
        if last is None:
            return 0
        seal = key.seal(user_sub, found.seq, found.hash, (last.seq, last.hash))
        kept = put_seal(found, seal).values(pruned_seq=last.seq, pruned_hash=last.hash)
        if not (await connection.execute(kept)).rowcount:  # somebody else sealed or pruned it just now
            return 0
        await connection.execute(entries_up_to(user_sub, last.seq))
        gone = delete(audit_links).where(audit_links.c.user_sub == user_sub, audit_links.c.seq <= last.seq)
        return (await connection.execute(gone)).rowcount


class AuditBroken(Exception):
    """A chain does not hold."""

    def __init__(self, found: Verified) -> None:
        what = found.fault.what if found.fault else ""
        super().__init__(f"the audit does not hold: {what}")
        self.found = found


def _key(database: Database) -> AuditKey:
    key = key_of(database.engine)
    if key is None:
        raise AssertionError("the audit of a running process has a key")
    return key


def unsealed() -> Select[str]:
    """Returns the statement, for the worker's role, for whose chains have grown since they were sealed."""
    grown = select(audit_heads.c.user_sub).where(audit_heads.c.seq > audit_heads.c.sealed_seq)
    return grown.order_by(audit_heads.c.user_sub)


def put_seal(found: Verified, seal: bytes) -> Update:
    """Returns the statement that keeps a seal, unless the chain was sealed or pruned since it was walked."""
    same = (audit_heads.c.sealed_seq == found.sealed_seq, audit_heads.c.pruned_seq == found.pruned[0])
    head = update(audit_heads).where(audit_heads.c.user_sub == found.user_sub, *same)
    return head.values(sealed_seq=found.seq, seal=seal)


def last_before(user_sub: str, before: datetime, until: int) -> Rows:
    """Returns the statement for the last link, ``until`` at most, before the first entry to be kept."""
    kept = (
        select(func.min(audit_links.c.seq))
        .join(audit, (audit.c.user_sub == audit_links.c.user_sub) & (audit.c.id == audit_links.c.entry_id))
        .where(audit_links.c.user_sub == user_sub, audit.c.created_at >= before)
    ).scalar_subquery()
    older = select(audit_links.c.seq, audit_links.c.hash).where(
        audit_links.c.user_sub == user_sub,
        audit_links.c.seq < func.coalesce(kept, until + 1),
        audit_links.c.seq <= until,
    )
    return older.order_by(audit_links.c.seq.desc()).limit(1)


def entries_up_to(user_sub: str, seq: int) -> Delete:
    """Returns the statement that deletes the entries up to a link."""
    gone = select(audit_links.c.entry_id).where(audit_links.c.user_sub == user_sub, audit_links.c.seq <= seq)
    return delete(audit).where(audit.c.user_sub == user_sub, audit.c.id.in_(gone))
