"""A service over a database that was not migrated says so, on every route that needs it."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest

from app.main import create_app
from app.postgres import EmbeddedPostgres
from app.postgres.migrate import migrate
from app.postgres.pools import dsn
from app.settings import Settings
from tests.conftest import new_database
from tests.service import AGENT, Service

ADVICE = "run casebank migrate"


@pytest.fixture
async def older(postgres: EmbeddedPostgres, tmp_path: Path) -> AsyncIterator[Service]:
    """A service that started over a database without tables."""
    url = await new_database(postgres)
    await migrate(url, "base")
    secrets = {"jwt_secret": os.urandom(32).hex(), "master_key": os.urandom(32).hex()}
    settings = Settings(home=tmp_path, database_url=url, **secrets)
    app = create_app(settings)
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        yield Service(app, settings, clients)


async def refuses(service: Service) -> None:
    """Asserts that the loop's routes answer with the advice, and that metrics are there all the same."""
    http = (await service.user("alice")).http
    assert (await http.get("/metrics")).status_code == 200
    run = {"agent": AGENT, "task": "water the garden", "outcome": "success"}
    for path, body in (("/v1/retrieve", {"agent": AGENT, "query": "water"}), ("/v1/retain", run)):
        answer = await http.post(path, json=body)
        assert answer.status_code == 503, answer.text
        assert ADVICE in answer.json()["detail"]


async def test_without_tables_no_route_answers_as_if_it_were_well(older: Service):
    ready = await (await older.user("alice")).http.get("/readyz")
    assert ready.status_code == 503
    assert ADVICE in ready.json()["detail"]
    await refuses(older)


async def test_where_a_column_is_missing_no_route_that_needs_it_answers_as_if_it_were_well(older: Service):
    url = str(older.settings.database_url)
    await migrate(url)
    owner = await asyncpg.connect(dsn(url))
    await owner.execute("ALTER TABLE cases DROP COLUMN words CASCADE")  # with the view that shows it
    await owner.close()
    await refuses(older)


async def test_what_is_noted_once_it_was_migrated_is_signed_without_a_restart(older: Service):
    await migrate(str(older.settings.database_url))
    alice = await older.user("alice")
    run = {"agent": AGENT, "task": "water the garden", "outcome": "success"}
    async with asyncio.timeout(60):
        while (answer := await alice.http.post("/v1/retain", json=run)).status_code == 503:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    assert answer.status_code == 202, answer.text
    await alice.settle()  # the worker writes the entry
    ((signed,),) = await alice.rows("SELECT bool_and(mac IS NOT NULL) FROM audit WHERE user_sub = :user_sub")
    assert signed


async def test_once_it_was_migrated_the_database_compares_the_vectors_without_a_restart(older: Service):
    await migrate(str(older.settings.database_url))
    alice = await older.user("alice")
    question = {"agent": AGENT, "query": "water the garden"}
    async with asyncio.timeout(30):
        while (answer := await alice.http.post("/v1/retrieve", json=question)).json().get("degraded") != []:  # noqa: ASYNC110
            await asyncio.sleep(0.5)
    assert answer.status_code == 200
    parts = older.runtime
    assert (parts.reader.pgvector, parts.worker.lessons.pgvector) == (True, True)
