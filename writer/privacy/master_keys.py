"""The master keys: what a process holds of them, and by which of them the database says that users' keys are wrapped.

The database keeps fingerprints alone. A new one takes over the key of the first process that comes; from then on no
process works with another: it would write what nobody else can read.

    CasebankError
    └── MasterKeyMismatch    this process lacks a master key that the database needs
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

from sqlalchemy import Select, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import CasebankError
from retrieval.tables.keys import master_keys, user_keys
from writer.privacy.seal import SealBroken, unwrap_key

LOCK = 0x6D61737465726B79
"""Of Postgres' advisory locks: shared by who wraps a new user's key, alone for who changes what is current."""
SAMPLE = 20
"""How many of the oldest users' keys a master key is tried on that a database without a fingerprint is to take over."""


class MasterKeyMismatch(CasebankError):
    """This process does not hold a master key that the database's users' keys are wrapped by."""


def fingerprint(master_key: bytes) -> str:
    """Returns 16 hex characters by which a master key is known, and from which it cannot be found."""
    return hashlib.sha256(b"casebank master key\0" + master_key).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class MasterKeys:
    """The master keys that a process holds, by their fingerprints.

    Attributes:
        wanted: the fingerprint of the one that is to be the database's; the others are for what they wrapped before.
        by_fingerprint: each of them, 32 bytes; the wanted one first.
    """

    wanted: str
    by_fingerprint: dict[str, bytes] = field(repr=False)

    @classmethod
    def of(cls, wanted: bytes, *old: bytes) -> Self:
        """Returns the keys, which are 32 bytes each."""
        return cls(fingerprint(wanted), {fingerprint(key): key for key in (wanted, *old)})

    def require(self, needed: Iterable[str]) -> None:
        """Returns if each of the fingerprints is that of a key held here.

        Raises:
            MasterKeyMismatch: one is not.
        """
        if missing := [known for known in needed if known not in self.by_fingerprint]:
            raise MasterKeyMismatch(
                f"this database is kept with the master key whose fingerprint is {' and '.join(missing)}, and this"
                f" process holds {' and '.join(self.by_fingerprint)}: set CASEBANK_MASTER_KEY to that key, or beside a"
                " new one CASEBANK_MASTER_KEY_OLD"
            )

    def unwrap(self, wrapped: bytes, by: str | None, *, user_sub: str) -> bytes:
        """Returns the user's key.

        Args:
            wrapped: the key as it is stored.
            by: fingerprint of the master key that wrapped it; None where that was not noted.
            user_sub: whose it is.

        Raises:
            MasterKeyMismatch: the master key is none of these.
            SealBroken: it does not open.
        """
        if by is not None:
            self.require([by])
            return unwrap_key(wrapped, self.by_fingerprint[by], user_sub=user_sub)
        for key in self.by_fingerprint.values():
            try:
                return unwrap_key(wrapped, key, user_sub=user_sub)
            except SealBroken:
                continue
        raise SealBroken("the user's key was wrapped by another master key, or was changed")


async def agree(connection: AsyncConnection, held: MasterKeys) -> None:
    """Returns if this process holds every master key that is in use; a database that has none takes over one of these.

    The connection must be the worker's. Of processes that come to a new database at once, with other keys, one wins.

    Raises:
        MasterKeyMismatch: it does not, or no key held here opens what is there already.
    """
    needed = (await connection.scalars(in_use())).all()
    if not needed:
        await connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        needed = (await connection.scalars(in_use())).all() or [await _take_over(connection, held)]
    held.require(needed)


async def wrapping(connection: AsyncConnection, held: MasterKeys) -> str:
    """Returns the fingerprint by which a new user's key is to be wrapped; until the transaction ends, it stays so.

    Raises:
        MasterKeyMismatch: this process does not hold that key.
    """
    await connection.execute(select(func.pg_advisory_xact_lock_shared(LOCK)))
    # a statement of its own, after the lock: it must see what somebody changed who had the lock before
    statement = select(master_keys.c.fingerprint).where(master_keys.c.status == "current")
    current: str | None = (await connection.execute(statement)).scalar_one_or_none()
    if current is None:
        return held.wanted
    held.require([current])
    return current


def in_use() -> Select[str]:
    """Returns the statement for the fingerprints of all keys that are needed, the current one first."""
    statement = select(master_keys.c.fingerprint).where(master_keys.c.status != "retired")
    return statement.order_by(master_keys.c.status, master_keys.c.fingerprint)


async def _take_over(connection: AsyncConnection, held: MasterKeys) -> str:
    """Notes the key that this database is to be kept with, and returns its fingerprint."""
    oldest = select(user_keys.c.user_sub, user_keys.c.wrapped_key).order_by(
        user_keys.c.created_at, user_keys.c.user_sub
    )
    sample = [(row.user_sub, row.wrapped_key) for row in await connection.execute(oldest.limit(SAMPLE))]
    # more than half: so no two keys can both be the one, though another may have come in since
    openers = [name for name, key in held.by_fingerprint.items() if 2 * _opened(sample, key) > len(sample)]
    if sample and not openers:
        raise MasterKeyMismatch(
            f"the users' keys in this database do not open with the master key {' or '.join(held.by_fingerprint)}: set"
            " CASEBANK_MASTER_KEY to the key that they were made with"
        )
    chosen = openers[0] if openers else held.wanted
    await connection.execute(insert(master_keys).values(fingerprint=chosen, status="current"))
    return chosen


def _opened(sample: Sequence[tuple[str, bytes]], key: bytes) -> int:
    """How many of the users' keys the master key opens."""
    return sum(_opens(wrapped, key, user_sub) for user_sub, wrapped in sample)


def _opens(wrapped: bytes, key: bytes, user_sub: str) -> bool:
    try:
        unwrap_key(wrapped, key, user_sub=user_sub)
    except SealBroken:
        return False
    return True
