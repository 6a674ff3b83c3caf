"""A user who was erased after a backup is erased again in rows of other users, too."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from sqlalchemy import select

from app.backup.erase_again import erase_again
from app.postgres.pools import service_database
from retrieval.database.database import Database
from retrieval.tables.audit import audit
from writer.audit import Change, note
from writer.rights.elsewhere import digest, tombstone


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with service_database(database_url) as database:
        yield database


async def test_a_name_that_stands_only_in_rows_of_others_is_replaced(database: Database, database_url: str):
    owner, judge = f"user-{uuid4()}", f"judge-{uuid4()}"
    async with database.as_user(owner, datetime.now(UTC)) as connection:
        await note(connection, Change.of((owner, None), judge, "do"))
    assert await erase_again(database_url, {digest(judge): datetime.now(UTC)}) == 1
    async with database.as_user(owner, datetime.now(UTC)) as connection:
        assert await connection.scalar(select(audit.c.actor).where(audit.c.user_sub == owner)) == tombstone(judge)
