"""The chain of tombstones, one for each erased user; it reveals a tombstone that was removed, added or changed."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import RowMapping, select, update

from retrieval.database.database import Database
from retrieval.tables.erasures import erasure_heads, erasure_links
from writer.audit.links import genesis, link_hash, tombstone_content
from writer.audit.signing import AuditKey, key_of
from writer.audit.verify import tombstones

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
        links = (await connection.execute(select(erasure_links).order_by(erasure_links.c.seq))).mappings().all()
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


async def seal_tombstones(database: Database, key: AuditKey) -> Tombstones:
    """Verifies the chain of tombstones, seals it if it is intact and has grown, and returns the result."""
    chain = await verify_tombstones(database)
    if chain.fault is None and chain.seq > chain.sealed_seq:
        same = erasure_heads.c.sealed_seq == chain.sealed_seq
        seal = key.seal(CHAIN, chain.seq, chain.hash)
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
    if key is None or head["seal"] is None:
        return None
    sealed = head["sealed_seq"]
    if sealed >= len(hashes) or not hmac.compare_digest(key.seal(CHAIN, sealed, hashes[sealed]), head["seal"]):
        return f"the erasures were linked anew: the seal of erasure {sealed} is broken"
    return None
