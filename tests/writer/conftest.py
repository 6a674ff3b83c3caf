"""A bank to write to, on the module's own database, with a way to put finished cases straight into it."""

import hashlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
import uuid_utils.compat as uuids
from sqlalchemy import func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from app.db import service_database
from retrieval.database.database import Database
from retrieval.schema import USER_TABLES, cases, profiles
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.privacy.seal import seal
from writer.profiles import Profile

AGENT = "agent"


@dataclass(frozen=True)
class Bank:
    database: Database
    keyring: Keyring

    def author(self, user_sub: str, at: datetime | None = None) -> Author:
        return Author(user_sub, "test", at or datetime.now(UTC))

    def profile(self, user_sub: str) -> Profile:
        return Profile(user_sub, AGENT, datetime.now(UTC))

    async def add(self, user_sub: str, *rows: dict[str, Any]) -> list[UUID]:
        """Inserts cases with these columns, ready unless they say otherwise; returns their ids in order."""
        async with self.database.as_user(user_sub, datetime.now(UTC)) as connection:
            key = await self.keyring.find_or_make(connection, user_sub)
            profile = upsert(profiles).values(user_sub=user_sub, agent_key=AGENT).on_conflict_do_nothing()
            await connection.execute(profile)
            full = [_row(user_sub, key, row) for row in rows]
            for row in full:
                await connection.execute(insert(cases).values(row))
        return [row["id"] for row in full]

    async def set_profile(self, user_sub: str, **settings: Any) -> None:
        async with self.database.as_user(user_sub, datetime.now(UTC)) as connection:
            await connection.execute(update(profiles).where(profiles.c.user_sub == user_sub).values(**settings))

    async def read(self, user_sub: str, statement: Any) -> list[Any]:
        async with self.database.as_user(user_sub, datetime.now(UTC)) as connection:
            return list((await connection.execute(statement)).all())

    async def ids(self, user_sub: str, status: str) -> set[UUID]:
        rows = await self.read(
            user_sub, select(cases.c.id).where(cases.c.user_sub == user_sub, cases.c.status == status)
        )
        return {row.id for row in rows}

    async def counts(self, user_sub: str) -> dict[str, int]:
        return {
            table.name: (await self.read(user_sub, select(func.count()).where(table.c.user_sub == user_sub)))[0][0]
            for table in USER_TABLES
        }


def _row(user_sub: str, key: Any, given: dict[str, Any]) -> dict[str, Any]:
    case_id = uuids.uuid7()
    task = given.get("task", f"task {case_id}")
    row = {
        "user_sub": user_sub,
        "id": case_id,
        "agent_key": AGENT,
        "kind": "task",
        "status": "ready",
        "task": task,
        "plan": [f"step of {case_id}"],
        "tools": [],
        "tags": [],
        "outcome": "success",
        "reward": 1.0,
        "reward_source": "metric",
        "step_count": 1,
        "error_count": 0,
        "search_text": task,
        "message_hash": hashlib.sha256(task.encode()).digest(),
        "request_hash": b"",
        "key_id": key.key_id,
        "payload": b"",
        **given,
    }
    row["payload"] = seal(given.get("payload"), key.key, user_sub=user_sub, case_id=row["id"])
    return row


@pytest.fixture
def user() -> str:
    return f"user-{uuid4()}"


@pytest.fixture
async def bank(database_url: str) -> AsyncIterator[Bank]:
    async with service_database(database_url) as database:
        yield Bank(database, Keyring(os.urandom(32)))
