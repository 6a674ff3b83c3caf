"""Master keys: the keys that a process holds, and the fingerprints of the keys that the database needs.

The database stores only fingerprints. A new database takes the key of the first process; a process with another key
then refuses to work, because other processes could not read its data.

    CasebankError
    └── MasterKeyMismatch    this process lacks a master key that the database needs
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from sqlalchemy import Select, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import CasebankError
from retrieval.tables.keys import master_keys, user_keys
from writer.privacy.seal import unwrap_key

LOCK = 0x6D61737465726B79
"""Postgres advisory lock: shared while a new user's key is wrapped, exclusive while the current master key changes."""


class MasterKeyMismatch(CasebankError):
    """Users' keys in the database are wrapped with a master key that this process does not hold."""


def fingerprint(master_key: bytes) -> str:
    """Returns 16 hex characters that identify a master key without revealing it."""
    return hashlib.sha256(b"casebank master key\0" + master_key).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class MasterKeys:
    """The master keys that a process holds, by their fingerprints.

    Attributes:
        wanted: fingerprint of the key that is to be the database's current master key; the others only unwrap keys.
        by_fingerprint: the master keys, 32 bytes each; the wanted key first.
    """

    wanted: str
    by_fingerprint: dict[str, bytes] = field(repr=False)

    @classmethod
    def of(cls, wanted: bytes, *old: bytes) -> Self:
        """Builds the set from the wanted master key and the old master keys, 32 bytes each."""
        return cls(fingerprint(wanted), {fingerprint(key): key for key in (wanted, *old)})

    def require(self, needed: Iterable[str]) -> None:
        """Checks that this process holds the master key of each fingerprint.

        Raises:
            MasterKeyMismatch: this process lacks one of these keys.
        """
        if missing := [known for known in needed if known not in self.by_fingerprint]:
            raise MasterKeyMismatch(
                f"this database is kept with the master key whose fingerprint is {' and '.join(missing)}, and this"
                f" process holds {' and '.join(self.by_fingerprint)}: set CASEBANK_MASTER_KEY to that key, or beside a"
                " new one CASEBANK_MASTER_KEY_OLD"
            )

    def unwrap(self, wrapped: bytes, by: str, *, user_sub: str) -> bytes:
        """Returns the user's key, unwrapped; ``by`` is the fingerprint of the master key that wrapped it.

        Raises:
            MasterKeyMismatch: this process does not hold the master key.
            SealBroken: the user's key cannot be unwrapped.
        """
        self.require([by])
        return unwrap_key(wrapped, self.by_fingerprint[by], user_sub=user_sub)


async def agree(connection: AsyncConnection, held: MasterKeys) -> None:
    """Checks that this process holds every master key in use; a new database takes the wanted key as its own.

    A database that has users, but no current key, takes the key of the oldest user, or is refused.

    The connection must be the worker's. If processes with different keys start on a new database at once, one key wins.

    Raises:
        MasterKeyMismatch: this process lacks a key in use.
    """
    needed = (await connection.scalars(in_use())).all()
    if not needed:
        await connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        needed = (await connection.scalars(in_use())).all()
    if not needed:
        oldest = select(user_keys.c.master_key).order_by(user_keys.c.created_at, user_keys.c.user_sub).limit(1)
        needed = [await connection.scalar(oldest) or held.wanted]
        await connection.execute(insert(master_keys).values(fingerprint=needed[0], status="current"))
    held.require(needed)


async def wrapping(connection: AsyncConnection, held: MasterKeys) -> str:
    """Returns the fingerprint of the master key for new users' keys, and locks it until the transaction ends.

    Raises:
        MasterKeyMismatch: this process does not hold that key.
    """
    await connection.execute(select(func.pg_advisory_xact_lock_shared(LOCK)))
    # a statement of its own after the lock, because it must see the changes of the lock's last holder
    statement = select(master_keys.c.fingerprint).where(master_keys.c.status == "current")
    current: str | None = (await connection.execute(statement)).scalar_one_or_none()
    if current is None:
        return held.wanted
    held.require([current])
    return current


def in_use() -> Select[str]:
    """Returns the statement for the fingerprints of the master keys that are not retired, the current key first."""
    statement = select(master_keys.c.fingerprint).where(master_keys.c.status != "retired")
    return statement.order_by(master_keys.c.status, master_keys.c.fingerprint)
