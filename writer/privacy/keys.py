"""Users' keys: one AES key for each user, wrapped by a master key, in a table apart from the encrypted data."""

from dataclasses import dataclass, field
from typing import Any

import uuid_utils.compat as uuids
from cachetools import LRUCache
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.database.parameters import USER_SUB, may_enter
from retrieval.tables.keys import user_keys
from writer.privacy.master_keys import MasterKeys, wrapping
from writer.privacy.seal import new_user_key, wrap_key
from writer.privacy.words import Words, WordsOfPage

CACHED_KEYS = 10_000

_STORED = user_keys.c.key_id, user_keys.c.wrapped_key, user_keys.c.master_key
_OF_CALLER: FastStatement[Any] = FastStatement(select(*_STORED).where(may_enter(), user_keys.c.user_sub == USER_SUB))


@dataclass(slots=True)
class Keyring:
    """Access to users' keys, with a cache of the keys that were used last; see `retrieval.sealed.Seals`.

    An erasure may have destroyed a cached key. Encrypting with that key does no harm: the foreign key from the row to
    ``user_keys`` refuses the row, and the caller drops the cached key and asks for the key again.

    Attributes:
        old: former master keys, by which some users' keys may still be wrapped.
        seals_words: true if new rows have their texts encrypted; stored rows keep their form.
    """

    master: bytes = field(repr=False)
    old: tuple[bytes, ...] = field(default=(), repr=False)
    seals_words: bool = False
    masters: MasterKeys = field(init=False)
    _cache: LRUCache[str, Words] = field(default_factory=lambda: LRUCache(CACHED_KEYS), repr=False)

    def __post_init__(self) -> None:
        """Computes the fingerprints of the master keys."""
        self.masters = MasterKeys.of(self.master, *self.old)

    def remembered(self, user_sub: str) -> Words | None:
        """Returns the user's cached key, or None if it is not cached."""
        return self._cache.get(user_sub)

    def forget(self, user_sub: str) -> None:
        """Drops the cached key of the user."""
        self._cache.pop(user_sub, None)

    async def find(self, connection: AsyncConnection, user_sub: str) -> Words | None:
        """Returns the user's key from the database, or None if the user has none.

        Raises:
            MasterKeyMismatch: the key is wrapped by a master key that this process does not hold.
            SealBroken: the stored key cannot be unwrapped.
        """
        query = select(*_STORED).where(user_keys.c.user_sub == user_sub)
        return self._opened((await connection.execute(query)).one_or_none(), user_sub)

    async def find_for_page(self, connection: AsyncConnection, user_sub: str) -> WordsOfPage | None:
        """Returns the user's key as ``find`` does, for the rows of a page."""
        words = await self.find(connection, user_sub)
        return None if words is None else words.of_page

    async def of_user(self, database: Database, connection: FastConnection) -> Words:
        """Returns the key of the connection's user, a cached one at once; a new user gets a key."""
        user_sub = connection.user_sub
        if (words := self.remembered(user_sub)) is None:
            rows = await connection.all(_OF_CALLER, {})  # one round trip to the database
            words = self._opened(rows[0] if rows else None, user_sub)
        if words is None:
            async with database.as_user(user_sub, connection.authorised_at) as transaction:
                words = await self.find_or_make(transaction, user_sub)
        return words

    def _opened(self, row: Any, user_sub: str) -> Words | None:
        if row is None:
            self.forget(user_sub)
            return None
        # a user who began again after an erasure has another key than the cached one
        if (known := self.remembered(user_sub)) is not None and known.key_id == row.key_id:
            return known
        words = Words(user_sub, row.key_id, self.masters.unwrap(row.wrapped_key, row.master_key, user_sub=user_sub))
        self._cache[user_sub] = words
        return words

    async def find_or_make(self, connection: AsyncConnection, user_sub: str) -> Words:
        """Returns the user's key, and makes it for a new user; concurrent callers get the same key.

        Raises:
            MasterKeyMismatch: this process does not hold the database's master key.
            SealBroken: the stored key cannot be unwrapped.
        """
        if (stored := await self.find(connection, user_sub)) is not None:
            return stored
        by = await wrapping(connection, self.masters)
        row = {
            "user_sub": user_sub,
            "key_id": uuids.uuid7(),
            "wrapped_key": wrap_key(new_user_key(), self.masters.by_fingerprint[by], user_sub=user_sub),
            "master_key": by,
        }
        await connection.execute(insert(user_keys).values(row).on_conflict_do_nothing(index_elements=["user_sub"]))
        stored = await self.find(connection, user_sub)
        if stored is None:
            raise AssertionError("the key that was just made is not visible: the transaction is not this user's")
        return stored
