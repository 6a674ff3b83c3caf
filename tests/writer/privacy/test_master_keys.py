"""A database is kept with one master key: who holds another is told so before anything is written."""

import asyncio
import os

import asyncpg
import pytest

from app.postgres.pools import dsn
from retrieval.database.database import Database
from tests.writer.privacy.conftest import key_of, start
from writer.privacy.master_keys import MasterKeyMismatch, MasterKeys, fingerprint

OURS, THEIRS = os.urandom(32), os.urandom(32)


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


async def test_the_key_of_the_first_user_is_the_databases_though_no_process_had_stored_it(database: Database):
    await key_of(database, "alice", OURS)  # as by a process that was started before the migration
    with pytest.raises(MasterKeyMismatch, match=fingerprint(OURS)):
        await start(database, THEIRS)
    await start(database, THEIRS, OURS)  # as the old key of a rotation that is to come
    await start(database, OURS)
    assert await key_of(database, "alice", OURS)


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
