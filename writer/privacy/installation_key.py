"""Keys of the installation: random, and wrapped by the master key, so that they survive a change of the master key."""

import os
from contextlib import suppress
from datetime import UTC, datetime

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import SealBroken
from retrieval.tables.keys import installation_keys
from writer.privacy.master_keys import MasterKeys, wrapping

_NONCE_BYTES = 12
_KEY_BYTES = 32


async def find_or_make(connection: AsyncConnection, held: MasterKeys, name: str) -> tuple[bytes, bool]:
    """Returns the installation's key of this name, and whether this call made it; concurrent callers get the same key.

    The connection must be the worker's.

    Raises:
        MasterKeyMismatch: this process does not hold the database's master key.
        SealBroken: the key was wrapped by another master key.
    """
    query = select(installation_keys.c.wrapped_key, installation_keys.c.created_at).where(
        installation_keys.c.name == name
    )
    row, is_new = (await connection.execute(query)).one_or_none(), False
    if row is None:
        made_at, by = datetime.now(UTC), await wrapping(connection, held)
        wrapped = _wrap(os.urandom(_KEY_BYTES), held.by_fingerprint[by], name, made_at)
        fresh = insert(installation_keys).values(name=name, wrapped_key=wrapped, created_at=made_at)
        is_new = (await connection.execute(fresh.on_conflict_do_nothing())).rowcount > 0
        row = (await connection.execute(query)).one()
    return _unwrap(row.wrapped_key, held, name, row.created_at), is_new


async def rewrap_all(connection: AsyncConnection, held: MasterKeys) -> int:
    """Wraps every key of the installation with the wanted master key, and returns their number.

    The connection must be the worker's and hold the lock of the master keys.

    Raises:
        SealBroken: a key was wrapped by a master key that this process does not hold.
    """
    rows = (await connection.execute(select(installation_keys).with_for_update())).all()
    for row in rows:
        key = _unwrap(row.wrapped_key, held, row.name, row.created_at)
        wrapped = _wrap(key, held.by_fingerprint[held.wanted], row.name, row.created_at)
        change = update(installation_keys).where(installation_keys.c.name == row.name).values(wrapped_key=wrapped)
        await connection.execute(change)
    return len(rows)


def _wrap(key: bytes, master: bytes, name: str, made_at: datetime) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(master).encrypt(nonce, key, _owner(name, made_at))


def _unwrap(wrapped: bytes, held: MasterKeys, name: str, made_at: datetime) -> bytes:
    """Returns the key, opened with the first master key that fits; during a rotation there are several."""
    for master in held.by_fingerprint.values():
        with suppress(InvalidTag, ValueError):
            return AESGCM(master).decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], _owner(name, made_at))
    raise SealBroken(
        f"the installation's {name} key was wrapped by another master key: set CASEBANK_MASTER_KEY, or beside a new one"
        " CASEBANK_MASTER_KEY_OLD, to the one that it was made with"
    )


def _owner(name: str, made_at: datetime) -> bytes:
    return f"installation key\0{name}\0{made_at.astimezone(UTC).isoformat(timespec='microseconds')}".encode()
