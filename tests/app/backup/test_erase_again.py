"""A user who was erased after a backup is erased again in rows of other users, too."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from pydantic import SecretStr
from sqlalchemy import select

from app.backup.erase_again import NotErasedAgain, erase_again, read_receipts
from app.postgres.pools import dsn, service_database
from app.settings import Settings
from retrieval.database.database import Database
from retrieval.tables.audit import audit
from tests.cluster import one_postgres
from tests.writer.blocked import begin_blocked
from writer.audit import Change, note
from writer.privacy.master_keys import MasterKeyMismatch, MasterKeys, agree
from writer.rights.erase import digest, erase, tombstone
from writer.rights.receipt import stored
from writer.rights.signature import Signer, verified


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with service_database(database_url) as database:
        yield database


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(home=tmp_path, database_url=database_url, jwt_secret="5" * 32, master_key="5" * 64)


async def test_a_name_that_stands_only_in_rows_of_others_is_replaced(
    database: Database, database_url: str, settings: Settings
):
    owner, judge = f"user-{uuid4()}", f"judge-{uuid4()}"
    async with database.as_user(owner, datetime.now(UTC)) as connection:
        await note(connection, Change.of((owner, None), judge, "do"))
    (receipt,) = await erase_again(settings, database_url, [(digest(judge), datetime.now(UTC))])
    assert receipt.renamed["audit.actor"] == 1
    ((_, erased_at, document),) = await stored(database, digest(judge))
    assert verified(document) == Signer.of(settings.master_key_bytes).public_key
    assert (erased_at, document["renamed"]) == (receipt.erased_at, receipt.renamed)
    async with database.as_user(owner, datetime.now(UTC)) as connection:
        assert await connection.scalar(select(audit.c.actor).where(audit.c.user_sub == owner)) == tombstone(judge)


def test_a_digest_is_read_in_any_letter_case_and_one_that_is_none_is_no_receipt(tmp_path: Path):
    file, erased_at = tmp_path / "receipt.json", "2026-01-01T00:00:00+00:00"
    file.write_text(json.dumps({"user_sha256": digest("ada").upper(), "erased_at": erased_at}))
    assert read_receipts([file]) == [(digest("ada"), datetime.fromisoformat(erased_at))]
    file.write_text(json.dumps({"user_sha256": "ada", "erased_at": erased_at}))
    with pytest.raises(NotErasedAgain, match="is no receipt"):
        read_receipts([file])


@one_postgres  # a cluster waits for a locked row, however long it is locked
async def test_a_name_in_a_row_that_stays_locked_is_reported_and_the_next_time_replaced(
    database: Database, database_url: str, settings: Settings
):
    owner, judge = f"user-{uuid4()}", f"judge-{uuid4()}"
    async with database.as_user(owner, datetime.now(UTC)) as connection:
        await note(connection, Change.of((owner, None), judge, "do"))
    before, during = [await asyncpg.connect(dsn(database_url)) for _ in range(2)]
    await before.execute("SELECT pg_advisory_lock(hashtextextended($1, 0))", judge)  # so that the erasure waits
    again = await begin_blocked(before, erase_again(settings, database_url, [(digest(judge), datetime.now(UTC))]))
    locked = during.transaction()
    await locked.start()
    assert len(await during.fetch("SELECT 1 FROM audit WHERE actor = $1 FOR UPDATE", judge)) == 1
    await before.close()
    for_a_table = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'audit'::regclass"
    waiting = 0
    while not (waiting or again.done()):  # it locks the table after its tries at the row
        await asyncio.sleep(0.02)
        waiting = await during.fetchval(for_a_table)
    await locked.rollback()
    with pytest.raises(NotErasedAgain, match=digest(judge)):
        await again
    await during.close()
    async with service_database(database_url) as another:
        assert (await erase(another, judge)).clean


async def test_with_the_key_of_another_installation_no_one_is_erased(
    database: Database, database_url: str, settings: Settings
):
    async with database.as_worker() as connection:
        await agree(connection, MasterKeys.of(bytes.fromhex("5" * 64)))
    other = settings.model_copy(update={"master_key": SecretStr("6" * 64)})
    with pytest.raises(MasterKeyMismatch):
        await erase_again(other, database_url, [(digest("ada"), datetime.now(UTC))])
    assert await stored(database, digest("ada")) == []
