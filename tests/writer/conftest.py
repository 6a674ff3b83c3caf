"""A bank to write to, on the module's own database, and workers whose vectors come from a server that can fail."""

import hashlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
import uuid_utils.compat as uuids
from prometheus_client import REGISTRY
from sqlalchemy import func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from app.postgres.pools import dsn, service_database
from app.providers.openai import Endpoint, OpenAIEmbedder, Patience
from retrieval.database.database import Database
from retrieval.tables.cases import cases
from retrieval.tables.metadata import USER_TABLES
from retrieval.tables.profiles import profiles
from tests.fakes.openai_server import Fault, OpenAIServer
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.privacy.words import Words
from writer.profiles import Profile
from writer.queue.queue import Pace
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.run import FinishedRun

AGENT = "agent"
DIMENSION = 16
MASTER_KEY = os.urandom(32)
"""One for all: what goes over every user meets those of other tests."""
PACE = Pace(backoff_s=1_000, backoff_max_s=10_000, max_attempts=3)
"""A failed case comes back after the test, unless the test says otherwise."""
PATIENT = Patience(timeout_s=60, budget_s=60, attempts=1, failures_to_open=10**6)
IMPATIENT = Patience(timeout_s=0.3, budget_s=1, attempts=1)
"""For a server that never answers; one that does may be slow on a busy machine."""


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
            words = await self.keyring.find_or_make(connection, user_sub)
            profile = upsert(profiles).values(user_sub=user_sub, agent_key=AGENT).on_conflict_do_nothing()
            await connection.execute(profile)
            full = [_row(words, row) for row in rows]
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


def _row(words: Words, given: dict[str, Any]) -> dict[str, Any]:
    case_id = uuids.uuid7()
    task = given.get("task", f"task {case_id}")
    row = {
        "user_sub": words.user_sub,
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
        "key_id": words.key_id,
        "payload": b"",
        **given,
    }
    row["payload"] = words.seal("payload", given.get("payload"), row["id"])
    return row


@pytest.fixture
def user() -> str:
    return f"user-{uuid4()}"


@pytest.fixture
async def bank(database_url: str) -> AsyncIterator[Bank]:
    async with service_database(database_url) as database:
        yield Bank(database, Keyring(MASTER_KEY))


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """The owner of the tables, whom row-level security does not bind; leaves an empty queue."""
    connection = await asyncpg.connect(dsn(database_url))
    yield connection
    await connection.execute("DELETE FROM cases WHERE status IN ('pending', 'dead')")
    await connection.close()


@pytest.fixture(scope="module")
def shared_server() -> Iterator[OpenAIServer]:
    with OpenAIServer(DIMENSION) as server:
        yield server


@pytest.fixture
def server(shared_server: OpenAIServer) -> OpenAIServer:
    shared_server.reset()
    return shared_server


class Picky(OpenAIServer):
    """Refuses every request with the word in it."""

    def _embeddings(self, payload: dict[str, Any], fault: Fault | None) -> Any:
        return super()._embeddings(payload, Fault.WRONG_DIMENSION if "poison" in str(payload["input"]) else fault)


class Gated(OpenAIServer):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__(DIMENSION)
        self.asked, self.go = threading.Event(), threading.Event()

    def __exit__(self, *error: object) -> None:
        self.go.set()
        super().__exit__(*error)

    def _embeddings(self, payload: dict[str, Any], fault: Fault | None) -> Any:
        self.asked.set()
        self.go.wait()
        return super()._embeddings(payload, fault)


MakeWorker = Callable[..., Worker]


@pytest.fixture
async def worker_on(bank: Bank, owner: asyncpg.Connection) -> AsyncIterator[MakeWorker]:
    """Makes workers whose vectors come from a server."""
    embedders: list[OpenAIEmbedder] = []

    def make(server: OpenAIServer, pace: Pace = PACE, patience: Patience = PATIENT) -> Worker:
        endpoint = Endpoint(base_url=server.base_url, model="fake", dimension=DIMENSION)
        embedders.append(OpenAIEmbedder(endpoint, patience))
        return Worker(bank.database, embedders[-1], bank.keyring, pace=pace)

    yield make
    for embedder in embedders:
        await embedder.aclose()


async def keep(bank: Bank, user: str, task: str = "water the garden", key: str | None = None, **more: Any) -> UUID:
    run = FinishedRun.model_validate({"agent": AGENT, "task": task, "outcome": "success", **more})
    return (await retain(bank.database, bank.keyring, run, bank.author(user), key)).case_id


async def drain(worker: Worker) -> None:
    while await worker.run_once():
        pass


async def states(bank: Bank, user: str) -> list[Any]:
    return await bank.read(user, select(cases).where(cases.c.user_sub == user).order_by(cases.c.id))


async def wake_all(owner: asyncpg.Connection) -> None:
    for queue in ("cases", "reflections"):
        await owner.execute(f"UPDATE {queue} SET available_at = now() WHERE status = 'pending'")  # noqa: S608 - two names


def lost_leases() -> float:
    return REGISTRY.get_sample_value("casebank_worker_cases_total", {"how": "LeaseLost"}) or 0


@contextmanager
def calls_on_the_loop(function: Any) -> Iterator[list[str]]:
    """Collects the caller of each call of a function in this thread, which is the event loop's."""
    callers: list[str] = []

    def see(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code is function.__code__ and frame.f_back is not None:
            callers.append(frame.f_back.f_code.co_name)

    sys.setprofile(see)
    try:
        yield callers
    finally:
        sys.setprofile(None)
