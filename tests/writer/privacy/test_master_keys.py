"""A database is kept with one master key: who holds another is told so before anything is written."""

import asyncio
import os
from uuid import uuid4

import asyncpg
import pytest

from app.postgres.pools import dsn
from retrieval.database.database import Database
from tests.writer.privacy.conftest import as_owner, key_of, start
from writer.privacy.master_keys import MasterKeyMismatch, MasterKeys, fingerprint

OURS, THEIRS = os.urandom(32), os.urandom(32)


async def from_before(database: Database, url: str, *made: bytes) -> list[str]:
    """Users whose keys those master keys wrapped, in that order, before the database noted which."""
    users = [f"{number}-{uuid4()}" for number, _ in enumerate(made)]
    for user, master in zip(users, made, strict=True):
        await key_of(database, user, master)
    await as_owner(url, "UPDATE user_keys SET master_key = NULL")
    return users


async def test_a_new_database_takes_over_the_key_of_the_first_and_refuses_another(database: Database):
    await start(database, OURS)
    await start(database, OURS)
    with pytest.raises(MasterKeyMismatch, match=f"{fingerprint(OURS)}.*{fingerprint(THEIRS)}.*CASEBANK_MASTER_KEY"):
        await start(database, THEIRS)


async def test_of_many_that_come_at_once_with_other_keys_one_wins(database: Database):
    came = await asyncio.gather(*(start(database, os.urandom(32)) for _ in range(8)), return_exceptions=True)
    assert [type(each) for each in came if each] == [MasterKeyMismatch] * 7
    assert came.count(None) == 1


async def test_a_process_that_went_on_with_another_key_writes_no_new_user(database: Database):
    await start(database, OURS)
    with pytest.raises(MasterKeyMismatch):
        await key_of(database, "alice", THEIRS)
    assert (await key_of(database, "alice", OURS)).key_id


async def test_a_database_from_before_is_taken_over_by_the_key_that_opens_it(database: Database, url: str):
    (user,) = await from_before(database, url, OURS)
    with pytest.raises(MasterKeyMismatch, match="do not open"):
        await start(database, THEIRS)
    await start(database, THEIRS, OURS)  # as the old key of a rotation that is to come
    await start(database, OURS)
    assert await key_of(database, user, OURS)


async def test_a_stray_replicas_users_do_not_make_its_key_the_databases(database: Database, url: str):
    await from_before(database, url, OURS, OURS, THEIRS)
    with pytest.raises(MasterKeyMismatch, match="do not open"):
        await start(database, THEIRS)
    await start(database, OURS)


async def test_one_damaged_key_shuts_nobody_out(database: Database, url: str):
    damaged, *_ = await from_before(database, url, OURS, OURS, OURS)
    await as_owner(url, f"UPDATE user_keys SET wrapped_key = '\\x00' WHERE user_sub = '{damaged}'")  # noqa: S608
    await start(database, OURS)


async def test_the_key_is_nowhere_in_the_database(database: Database, url: str):
    await start(database, OURS)
    await key_of(database, "alice", OURS)
    owner = await asyncpg.connect(dsn(url))
    rows = str([await owner.fetch(f"TABLE {table}") for table in ("master_keys", "user_keys")])
    await owner.close()
    assert fingerprint(OURS) in rows
    assert OURS.hex() not in rows
    assert repr(OURS) not in rows


def test_the_keys_are_not_shown_where_what_holds_them_is():
    assert OURS.hex() not in repr(MasterKeys.of(OURS))
    assert repr(OURS) not in repr(MasterKeys.of(OURS))
