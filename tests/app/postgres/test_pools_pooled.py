"""Behind a pooler in transaction mode every transaction is the service's own, whoever had the session before."""

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from app.postgres import EmbeddedPostgres
from app.postgres.migrate import migrate
from app.postgres.pools import SERVICE_ROLE, dsn, is_citus, is_pooled, service_database
from retrieval.errors import DatabaseUnavailable
from tests.conftest import new_database
from tests.fakes.transaction_pooler import PROGRAM, transaction_pooler
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.retain.retain import retain
from writer.run import FinishedRun

needs_pgbouncer = pytest.mark.skipif(PROGRAM is None, reason="there is no pgbouncer here")


@pytest.fixture(scope="module")
def port(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with transaction_pooler(postgres, tmp_path_factory.mktemp("pooler")) as port:
        yield port


@pytest.fixture
async def address(postgres: EmbeddedPostgres, port: int) -> str:
    return f"postgresql://postgres@127.0.0.1:{port}/{make_url(await new_database(postgres)).database}"


def test_the_url_says_so_and_the_driver_is_not_told():
    assert dsn("postgresql://db/bank?pgbouncer=true&sslmode=require") == "postgresql://db/bank?sslmode=require"
    assert [is_pooled(f"postgresql://db/bank?{query}") for query in ("pgbouncer=true", "pgbouncer=false", "")] == [
        True,
        False,
        False,
    ]


def test_the_url_of_a_cluster_says_so_and_the_driver_is_not_told():
    assert dsn("postgresql://db/bank?citus=true") == "postgresql://db/bank"
    assert [is_citus(f"postgresql://db/bank?{query}") for query in ("citus=true", "citus=0", "")] == [
        True,
        False,
        False,
    ]


@needs_pgbouncer
async def test_twenty_users_at_once_share_two_sessions_and_see_their_own_rows_alone(address: str):
    url = f"{address}?pgbouncer=true"
    await migrate(url)
    async with service_database(url) as database:
        keyring = Keyring(os.urandom(32))

        async def use(user: str) -> None:
            for number in range(3):
                run = FinishedRun(agent="a", task=f"water the garden {number}", outcome="success")
                await retain(database, keyring, run, Author(user, user, datetime.now(UTC)))
            async with database.as_user(user, datetime.now(UTC)) as connection:
                assert await connection.scalar(text("SELECT current_user")) == SERVICE_ROLE
                assert await connection.scalar(text("SELECT count(*) FROM cases")) == 3

        await asyncio.gather(*(use(f"user-{uuid4()}") for _ in range(20)))
        async with database.as_user("nobody", datetime.now(UTC)) as connection:
            assert await connection.scalar(text("SELECT count(*) FROM cases")) == 0


@needs_pgbouncer
async def test_a_url_that_does_not_say_so_is_told_what_to_add(address: str):
    async with service_database(address) as database:
        with pytest.raises(DatabaseUnavailable, match="pgbouncer=true"):
            async with database.as_user("alice", datetime.now(UTC)):
                pass
