"""The connections: whatever URL a cloud hands out is understood in one way, and every one acts as the service."""

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from app.postgres import EmbeddedPostgres
from app.postgres.migrate import migrate
from app.postgres.pools import SERVICE_ROLE, dsn, service_database
from retrieval.search.candidates import CaseSearch, candidates
from retrieval.tables.cases import INDEXED_DIMENSIONS
from tests.conftest import new_database
from tests.fakes.tls_front import TlsFront, tls_front
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.retain.retain import retain
from writer.run import FinishedRun


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_every_usual_url_is_one_of_the_driver(scheme: str):
    assert dsn(f"{scheme}://me@db:5432/bank?sslmode=require") == "postgresql://me@db:5432/bank?sslmode=require"


@pytest.mark.parametrize("url", ["mysql://db/bank", "postgresql+psycopg://db/bank", "", "/var/run", "postgresql"])
def test_another_database_is_refused_without_quoting_the_url(url: str):
    with pytest.raises(ValueError, match=r"DATABASE_URL must begin with postgresql://$"):
        dsn(url)


@pytest.mark.parametrize("place", ["db:5432x", "db:54 32", "one:5432,two:x", "[::1]:x"])
def test_a_port_that_is_no_number_is_refused_in_words_without_quoting_the_url(place: str):
    with pytest.raises(ValueError, match=r"^DATABASE_URL: the port behind the host must be a number$"):
        dsn(f"postgresql://me:hunter2@{place}/bank")


@pytest.mark.parametrize(
    "password", ["p@ss", "p/w", "p?w", "p#w", "a/b+c==", "p:w", "p[w]", "p w", "§ü", "p%40ss", "x@h/y"]
)
def test_a_password_with_odd_characters_arrives_as_it_is(password: str):
    parts = urlsplit(dsn(f"postgresql://me:{password}@db.example.org:6432/bank?sslmode=require"))
    assert (parts.username, parts.hostname, parts.port, parts.path) == ("me", "db.example.org", 6432, "/bank")
    assert unquote(parts.password) in {password, unquote(password)}
    without_a_name = urlsplit(dsn(f"postgresql://me:{password}@db.example.org:6432"))
    assert (without_a_name.hostname, without_a_name.port) == ("db.example.org", 6432)
    assert without_a_name.password == parts.password


def test_digits_and_a_slash_are_a_password_where_the_url_names_a_database():
    assert urlsplit(dsn("postgresql://me:12/x@db:6432/bank")).password == "12%2Fx"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://db:5432/bank?application_name=a%40b",
        "postgresql://me@db/bank",
        "postgresql://me@[::1]:5432/bank",
        "postgresql://me:secret@one:5432,two:5433/bank?target_session_attrs=read-write",
        "postgresql://postgres@/bank?host=/tmp/x&port=5432",
        "postgresql://db:5432/bank@home",
        "postgresql://db?application_name=a:b@c",
        "postgresql://db:5432?application_name=a@b",
    ],
)
def test_what_is_no_odd_password_stays_as_it_is(url: str):
    assert unquote(dsn(url)) == unquote(url)


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        ("ssl=require", "sslmode=require"),
        ("ssl=true", "sslmode=require"),
        ("ssl=false", "sslmode=disable"),
        ("sslmode=require&channel_binding=require&connect_timeout=10&gssencmode=disable", "sslmode=require"),
    ],
)
def test_what_other_drivers_say_is_translated_or_left_out(given: str, understood: str):
    assert dsn(f"postgresql://db/bank?{given}") == f"postgresql://db/bank?{understood}"


def test_the_systems_authorities_are_a_file_that_is_there():
    name, _, file = unquote(urlsplit(dsn("postgresql://db/bank?sslrootcert=system")).query).partition("=")
    assert (name, Path(file).is_file()) == ("sslrootcert", True)


@pytest.fixture(scope="module")
async def front(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TlsFront]:
    socket = postgres.socket_dir / f".s.PGSQL.{postgres.port}"
    async with tls_front(tmp_path_factory.mktemp("tls"), socket) as front:
        yield front


@pytest.mark.parametrize(
    "how",
    [
        "sslmode=require",
        "ssl=require",
        "sslmode=verify-full&sslrootcert={certificate}",
        "sslmode=verify-ca&sslrootcert={certificate}&channel_binding=prefer",
    ],
)
async def test_a_managed_postgres_is_migrated_retained_to_and_read_by_tls(
    postgres: EmbeddedPostgres, front: TlsFront, how: str
):
    name = make_url(await new_database(postgres)).database
    query = how.format(certificate=front.certificate)
    url = f"postgresql://postgres:p@ss/w@127.0.0.1:{front.port}/{name}?{query}"
    await migrate(url)
    async with service_database(url) as database:
        run = FinishedRun(agent="a", task="water the garden", outcome="success")
        kept = await retain(database, Keyring(os.urandom(32)), run, Author("alice", "alice", datetime.now(UTC)))
        async with database.as_user("alice", datetime.now(UTC)) as connection:
            assert (await connection.scalars(text("SELECT id FROM cases"))).all() == [kept.case_id]


async def test_a_certificate_that_nobody_vouches_for_is_refused(front: TlsFront):
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        await migrate(f"postgresql://postgres@127.0.0.1:{front.port}/postgres?sslmode=verify-full&sslrootcert=system")


async def test_a_connection_acts_as_the_service_whoever_logs_in(database_url: str):
    async with service_database(database_url, pool_size=1) as database, database.engine.connect() as connection:
        assert await connection.scalar(text("SELECT current_user")) == SERVICE_ROLE
        assert await connection.scalar(text("SELECT session_user")) != SERVICE_ROLE


async def test_the_longest_statement_of_the_fast_path_is_planned_once(database_url: str):
    search = CaseSearch("a", "rename a column", vector=[0.5] * INDEXED_DIMENSIONS[0], model="m")
    statement, parameters = candidates(search, approximate=True)
    now = datetime.now(UTC)
    async with service_database(database_url, pool_size=1) as database:
        for _ in range(2):
            async with database.fast("alice", now) as fast:
                await fast.all(statement, parameters)
        async with database.pool.acquire() as driver:
            kept = await driver.fetch("SELECT statement, generic_plans, custom_plans FROM pg_prepared_statements")
    plans = [(each["generic_plans"], each["custom_plans"]) for each in kept if each["statement"] == statement.sql]
    assert plans == [(2, 0)]
