"""A bank whose buckets two processes share."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from app.postgres.pools import service_database
from retrieval.database.database import Database
from writer.author import Author


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with service_database(database_url) as database:
        yield database


def somebody() -> Author:
    name = f"user-{uuid4()}"
    return Author(name, name, datetime.now(UTC))
