"""An empty bank for the doctor to look at, and ways to make it ill."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from pydantic import SecretStr

from app.doctor import CheckResult, examine
from app.postgres import EmbeddedPostgres
from app.postgres.pools import dsn, service_database
from app.settings import Settings
from tests.conftest import new_database
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.retain.retain import retain
from writer.run import FinishedRun

MASTER = os.urandom(32)


@pytest.fixture
async def url(postgres: EmbeddedPostgres) -> str:
    return await new_database(postgres)


def settings(url: str, home: Path, **more: Any) -> Settings:
    given = {"home": home, "database_url": url, "master_key": SecretStr(MASTER.hex()), **more}
    return Settings(**given)


async def look(url: str, home: Path, **more: Any) -> dict[str, CheckResult]:
    return await examine(settings(url, home, **more))


async def as_owner(url: str, statement: str) -> None:
    owner = await asyncpg.connect(dsn(url))
    await owner.execute(statement)
    await owner.close()


async def retain_one(url: str) -> str:
    user = f"user-{uuid4()}"
    run = FinishedRun(agent="agent", task="a task", outcome="success")
    async with service_database(url) as database:
        await retain(database, Keyring(MASTER), run, Author(user, "test", datetime.now(UTC)))
    return user
