"""A bank of its own for tests that look at every user of it."""

import os
from collections.abc import AsyncIterator

import pytest

from app.postgres import EmbeddedPostgres
from app.postgres.pools import service_database
from tests.conftest import new_database
from tests.writer.conftest import Bank
from writer.privacy.keys import Keyring


@pytest.fixture
async def alone(postgres: EmbeddedPostgres) -> AsyncIterator[tuple[Bank, str]]:
    """A bank that holds the users of this test alone, and its URL."""
    url = await new_database(postgres)
    async with service_database(url) as database:
        yield Bank(database, Keyring(os.urandom(32))), url
