"""The chain of tombstones, one for each erased user; it reveals a tombstone that was removed, added or changed."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlalchemy import RowMapping, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.tables.audit import erasure_heads, erasure_links
from writer.audit.signing import SEAL_BYTES, AuditKey, genesis, key_of, link_hash, tombstone_content
from writer.audit.verify import readable, tombstones

CHAIN = "erasures"


@dataclass(frozen=True, slots=True)
class Tombstones:
    """The result of verifying the chain of tombstones.

    Attributes:
        seq: number of erasures.
        sealed_seq: number of the last sealed link.
        fault: the first fault; None if the chain is intact.
    """

    seq: int
    hash: bytes
    sealed_seq: int
    fault: str | None = None


async def verify_tombstones(database: Database) -> Tombstones:
    """Verifies the chain of all tombstones in one snapshot of the database."""
    as_it_stands = database.engine.execution_options(isolation_level="REPEATABLE READ")
    async with replace(database, engine=as_it_stands).as_worker() as connection:
        link = erasure_links.c
        every = select(link.seq, link.user_sha256, readable(link.erased_at), link.hash).order_by(link.seq)
        links = (await connection.execute(every)).mappings().all()
        stones = {(row.user_sub, row.erased_at) for row in await connection.execute(tombstones())}
        head = (await connection.execute(select(erasure_heads))).mappings().one_or_none()
    if head is None:
        return Tombstones(0, b"", 0, "the head of the chain of erasures is gone")
    fault = _chain_fault(links, head, key_of(database.engine))
    linked = {(link["user_sha256"], link["erased_at"]): link["seq"] for link in links}
    if fault is None and (gone := linked.keys() - stones):
        fault = f"the tombstone of erasure {min(map(linked.__getitem__, gone))} was deleted or changed"
    if fault is None and (strange := stones - linked.keys()):
        fault = f"a tombstone was put in: {min(strange)[0]}"
    return Tombstones(head["seq"], head["hash"], head["sealed_seq"], fault)


async def begin_seals(connection: AsyncConnection, key: AuditKey) -> None:
    """Seals the chain of tombstones when the audit key is made; it has no seal, and no sealing had a time."""
    seal = key.seal(CHAIN, 0, genesis(CHAIN)) + key.time_of_sealing(datetime.fromtimestamp(0, UTC))
    await connection.execute(update(erasure_heads).values(sealed_seq=0, seal=seal))


async def seal_tombstones(database: Database, key: AuditKey, begun_at: datetime) -> Tombstones:
    """Verifies the chain of tombstones, seals it if it is intact, and returns the result.

    The seal has the time at which the sealing of all chains began.
    """
    chain = await verify_tombstones(database)
    if chain.fault is None:
        same = erasure_heads.c.sealed_seq == chain.sealed_seq
        seal = key.seal(CHAIN, chain.seq, chain.hash) + key.time_of_sealing(begun_at)
        async with database.as_worker() as connection:
            await connection.execute(update(erasure_heads).where(same).values(sealed_seq=chain.seq, seal=seal))
    return chain


def _chain_fault(links: Sequence[RowMapping], head: RowMapping, key: AuditKey | None) -> str | None:
    """Returns the fault of the links, of their end, or of the seal; None if the chain is intact."""
    before = genesis(CHAIN)
    for seq, link in enumerate(links, start=1):
        before = link_hash(before, seq, tombstone_content(link["user_sha256"], link["erased_at"]))
        if link["seq"] != seq or link["hash"] != before:
            return f"erasure {seq} is missing, was changed, or was put in"
    hashes = [genesis(CHAIN), *(link["hash"] for link in links)]
    if len(links) != head["seq"] or hashes[-1] != head["hash"]:
        return f"the end was cut: the head says {head['seq']} erasures"
    if key is None:
        return None
    sealed, seal = head["sealed_seq"], head["seal"]
    if seal is None:
        return "no seal speaks for the erasures: it was removed"
    if sealed >= len(hashes) or not hmac.compare_digest(key.seal(CHAIN, sealed, hashes[sealed]), seal[:SEAL_BYTES]):
        return f"the erasures were linked anew: the seal of erasure {sealed} is broken"
    return None if key.sealed_at(seal) else "the time of the last sealing was changed or removed"
