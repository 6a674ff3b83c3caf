"""The users' keys: one AES key per user, wrapped by a master key, in a table apart from what it seals."""

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.database.parameters import USER_SUB, may_enter
from retrieval.tables.keys import user_keys
from writer.privacy.master_keys import MasterKeys, wrapping
from writer.privacy.seal import new_user_key, wrap_key

CACHED_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class UserKey:
    """A user's key and its name; the name is stored beside everything it seals."""

    key_id: UUID
    key: bytes = field(repr=False)


class _Stored(Protocol):
    """A user's key as the database has it."""

    key_id: UUID
    wrapped_key: bytes
    master_key: str | None


@cache
def key_of_user() -> FastStatement[_Stored]:
    """Returns the statement for the user's key."""
    return FastStatement.of(select(*_STORED).where(may_enter(), user_keys.c.user_sub == USER_SUB))


_STORED = user_keys.c.key_id, user_keys.c.wrapped_key, user_keys.c.master_key


@dataclass(slots=True)
class Keyring:
    """Finds and makes users' keys; remembers the last ones used.

    A remembered key may have been destroyed by an erasure since. Sealing with it is harmless: the foreign
    key from what was sealed to ``user_keys`` refuses the row, and the caller forgets the key and asks again.
    """

    master: bytes = field(repr=False)
    old: tuple[bytes, ...] = field(default=(), repr=False)
    """Master keys of before, by which some users' keys may still be wrapped."""
    seals_words: bool = False
    """Whether what is written from now on has its words sealed; what is there says by itself whether it has."""
    masters: MasterKeys = field(init=False)
    _cache: OrderedDict[str, UserKey] = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self) -> None:
        """Knows the master keys by their fingerprints."""
        self.masters = MasterKeys.of(self.master, *self.old)

    def remembered(self, user_sub: str) -> UserKey | None:
        """Returns the user's key if it was used lately."""
        return self._cache.get(user_sub)

    def forget(self, user_sub: str) -> None:
        """Drops the remembered key of the user."""
        self._cache.pop(user_sub, None)

    async def find(self, connection: AsyncConnection, user_sub: str) -> UserKey | None:
        """Returns the user's key as the database has it, if there is one.

        Raises:
            MasterKeyMismatch: it is wrapped by a master key that this process does not hold.
            SealBroken: it does not open.
        """
        wanted = select(*_STORED).where(user_keys.c.user_sub == user_sub)
        return self._opened((await connection.execute(wanted)).one_or_none(), user_sub)

    async def find_fast(self, connection: FastConnection) -> UserKey | None:
        """Returns the key of the connection's user as ``find`` does, in one round trip."""
        rows = await connection.all(key_of_user(), {})
        return self._opened(rows[0] if rows else None, connection.user_sub)

    def _opened(self, row: _Stored | None, user_sub: str) -> UserKey | None:
        if row is None:
            self.forget(user_sub)
            return None
        # a user who began anew after an erasure has another key than the one remembered
        if (known := self.remembered(user_sub)) is not None and known.key_id == row.key_id:
            return known
        key = self.masters.unwrap(row.wrapped_key, row.master_key, user_sub=user_sub)
        return self._remember(user_sub, UserKey(row.key_id, key))

    async def find_or_make(self, connection: AsyncConnection, user_sub: str) -> UserKey:
        """Returns the user's key; a new user gets one, the same one whoever asks at the same time.

        Raises:
            MasterKeyMismatch: the database's master key is none of those that this process holds.
            SealBroken: the key that is there does not open.
        """
        if (there := await self.find(connection, user_sub)) is not None:
            return there
        by = await wrapping(connection, self.masters)
        row = {
            "user_sub": user_sub,
            "key_id": uuids.uuid7(),
            "wrapped_key": wrap_key(new_user_key(), self.masters.by_fingerprint[by], user_sub=user_sub),
            "master_key": by,
        }
        await connection.execute(insert(user_keys).values(row).on_conflict_do_nothing(index_elements=["user_sub"]))
        found = await self.find(connection, user_sub)
        if found is None:
            raise AssertionError("the key that was just made is not visible: the transaction is not this user's")
        return found

    def _remember(self, user_sub: str, key: UserKey) -> UserKey:
        self._cache[user_sub] = key
        if len(self._cache) > CACHED_KEYS:
            self._cache.popitem(last=False)
        return key
