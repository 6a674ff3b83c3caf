"""Seals and prunes the audit chains; only an intact chain is sealed or pruned."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Update, delete, func, select, update

from retrieval.database.database import Database
from retrieval.errors import UserErased
from retrieval.tables.audit import audit, audit_heads, audit_links
from writer.audit.signing import AuditKey, key_of
from writer.audit.tombstone_chain import Tombstones, seal_tombstones
from writer.audit.verify import Verified, read_erasures, verify_user


@dataclass(frozen=True, slots=True)
class Sealed:
    """The result of sealing all audit chains.

    Attributes:
        sealed: number of users' chains with a new seal.
        broken: chains that are not intact; they keep their old seal.
        tombstones: result for the chain of erasures.
    """

    sealed: int
    broken: list[Verified]
    tombstones: Tombstones


async def seal_all(database: Database) -> Sealed:
    """Seals every user's audit chain that is intact and grew since its last seal, and the chain of erasures.

    From then on, an attacker who can write to the database but lacks the master key cannot remove or move an entry
    without breaking the seal, nor remove the seal: with the seal of the erasures, the time of the sealing is stored.
    """
    key, begun_at = _key(database), datetime.now(UTC)
    async with database.as_worker() as connection:
        unsealed = select(audit_heads.c.user_sub).where(audit_heads.c.seq > audit_heads.c.sealed_seq)
        grown = (await connection.scalars(unsealed.order_by(audit_heads.c.user_sub))).all()
    erasures = await read_erasures(database)
    sealed = 0
    broken: list[Verified] = []
    for user_sub in grown:
        with suppress(UserErased):  # erased since the list was made
            chain = await verify_user(database, user_sub, erasures, since_seal=True)
            if chain.fault is not None:
                broken.append(chain)
                continue
            seal = key.seal(user_sub, chain.seq, chain.hash, chain.pruned)
            async with database.as_user(user_sub, datetime.now(UTC)) as connection:
                sealed += (await connection.execute(put_seal(chain, seal))).rowcount
    return Sealed(sealed, broken, await seal_tombstones(database, key, begun_at))


async def prune_audit(database: Database, user_sub: str, before: datetime) -> int:
    """Deletes the user's audit entries from before a time, and returns their number; the user's chain must be intact.

    The kept entries can still be verified, because the seal covers the number and the hash of the last deleted entry.

    Raises:
        UserErased: the user was erased, and the audit with the user.
        AuditBroken: the chain is not intact; nothing was deleted.
    """
    key = _key(database)
    chain = await verify_user(database, user_sub, await read_erasures(database))
    if chain.fault is not None:
        raise AuditBroken(f"the audit does not hold: {chain.fault.what}")
    entries, links = audit.c.user_sub == user_sub, audit_links.c.user_sub == user_sub
    of_link = (audit.c.user_sub == audit_links.c.user_sub) & (audit.c.id == audit_links.c.entry_id)
    first_kept = select(func.min(audit_links.c.seq)).join(audit, of_link).where(links, audit.c.created_at >= before)
    older = (
        audit_links.c.seq < func.coalesce(first_kept.scalar_subquery(), chain.seq + 1),
        audit_links.c.seq <= chain.seq,
    )
    newest_older = select(audit_links.c.seq, audit_links.c.hash).where(links, *older)
    async with database.as_user(user_sub, datetime.now(UTC)) as connection:
        last = (await connection.execute(newest_older.order_by(audit_links.c.seq.desc()).limit(1))).one_or_none()
        if last is None:
            return 0
        seal = key.seal(user_sub, chain.seq, chain.hash, (last.seq, last.hash))
        kept = put_seal(chain, seal).values(pruned_seq=last.seq, pruned_hash=last.hash)
        if not (await connection.execute(kept)).rowcount:  # another process sealed or pruned it in the meantime
            return 0
        pruned = links, audit_links.c.seq <= last.seq
        linked = select(audit_links.c.entry_id).where(*pruned)
        await connection.execute(delete(audit).where(entries, audit.c.id.in_(linked)))
        return (await connection.execute(delete(audit_links).where(*pruned))).rowcount


class AuditBroken(Exception):
    """A user's audit chain is not intact."""


def _key(database: Database) -> AuditKey:
    key = key_of(database.engine)
    if key is None:
        raise AssertionError("the audit of a running process has a key")
    return key


def put_seal(chain: Verified, seal: bytes) -> Update:
    """Returns the statement that stores a verified audit chain's seal, unless it was sealed or pruned meanwhile."""
    same = (audit_heads.c.sealed_seq == chain.sealed_seq, audit_heads.c.pruned_seq == chain.pruned[0])
    head = update(audit_heads).where(audit_heads.c.user_sub == chain.user_sub, *same)
    return head.values(sealed_seq=chain.seq, seal=seal)
