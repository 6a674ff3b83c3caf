"""Migrations beside a living service: they get their tables soon, or give them up."""

import asyncio
from uuid import uuid4

import asyncpg
import pytest

from app.postgres import EmbeddedPostgres
from app.postgres.migrate import migrate
from app.postgres.pools import dsn
from app.postgres.revisions import MigrationRefused, SchemaInUse, is_newest, newest
from tests.conftest import WAITING, new_database

MIGRATION_LOCK = 0x6361736562616E6B  # as in alembic/env.py, which only alembic can import


BEFORE, HEAD = "0015_keyed_hashes", "0016_repeated_at"


@pytest.fixture
async def url(postgres: EmbeddedPostgres) -> str:
    """URL of a bank."""
    return await new_database(postgres)


@pytest.fixture
async def empty(url: str) -> str:
    """URL of a database without tables."""
    await migrate(url, "base")
    return url


async def connected(url: str) -> asyncpg.Connection:
    return await asyncpg.connect(dsn(url))


async def revision(connection: asyncpg.Connection) -> str | None:
    return await connection.fetchval("SELECT version_num FROM alembic_version")


async def test_a_migration_beside_a_long_transaction_gives_up_with_one_line_and_lets_queries_through(url: str):
    long, other = await connected(url), await connected(url)
    transaction = long.transaction()
    await transaction.start()
    await long.fetch("SELECT * FROM cases")
    migration = asyncio.create_task(migrate(url, "base"))
    async with asyncio.timeout(60):
        while not await other.fetchval(WAITING):  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)
        await other.fetch("SELECT * FROM cases")  # which waits behind the migration, and goes on when that gives up
    with pytest.raises(SchemaInUse, match="another transaction holds") as caught:
        await migration
    assert "\n" not in str(caught.value)
    assert await revision(other) == HEAD
    await transaction.rollback()
    await migrate(url, "base")
    assert await revision(other) is None
    for connection in (long, other):
        await connection.close()


async def test_one_that_comes_while_another_migrates_waits_for_it_however_long_that_takes(empty: str):
    first = await connected(empty)
    transaction = first.transaction()
    await transaction.start()
    await first.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
    second = asyncio.create_task(migrate(empty))
    await asyncio.sleep(6)
    assert not second.done()
    await transaction.rollback()
    await second
    assert await revision(first) == HEAD
    await first.close()


async def test_a_revision_below_the_current_one_is_gone_down_to(url: str):
    connection = await connected(url)
    await migrate(url, "-1")
    assert await revision(connection) == BEFORE
    await migrate(url, "+1")
    assert await revision(connection) == HEAD
    await migrate(url, "base")
    assert await revision(connection) is None
    await migrate(url, HEAD)
    assert await revision(connection) == HEAD
    await connection.close()


async def test_a_revision_by_the_beginning_of_its_name_is_gone_down_to_and_named_in_full(url: str):
    connection = await connected(url)
    assert await migrate(url, BEFORE[:4]) == BEFORE
    assert await revision(connection) == BEFORE
    assert await migrate(url, "head") == HEAD
    await connection.close()


@pytest.mark.parametrize("name", ["", "head-2", f"{BEFORE}:{HEAD}"])
async def test_a_revision_that_names_none_is_refused_in_one_line(url: str, name: str):
    with pytest.raises(MigrationRefused, match="revision") as caught:
        await migrate(url, name)
    assert "\n" not in str(caught.value)


async def test_a_database_is_at_the_newest_revision_once_it_is_migrated(empty: str):
    assert newest() == HEAD
    assert not await is_newest(empty)
    await migrate(empty, BEFORE)
    assert not await is_newest(empty)
    await migrate(empty)
    assert await is_newest(empty)


@pytest.mark.parametrize("target", ["head", "base", HEAD, "-1"])
async def test_a_revision_that_this_version_does_not_have_is_told_how_to_move_its_data(url: str, target: str):
    connection = await connected(url)
    await connection.execute("UPDATE alembic_version SET version_num = '0045'")
    with pytest.raises(MigrationRefused) as caught:
        await migrate(url, target)
    assert str(caught.value) == (
        "the database is at revision 0045, which this version does not have: `casebank export` each user with the"
        " version that wrote it, then `casebank backfill` each file into a new database with this one"
    )
    assert await revision(connection) == "0045"
    await connection.close()


async def test_a_revision_of_a_newer_version_is_told_to_be_migrated_down_by_that_version(url: str):
    connection = await connected(url)
    await connection.execute("UPDATE alembic_version SET version_num = '0999_newer'")
    with pytest.raises(MigrationRefused) as caught:
        await migrate(url)
    assert str(caught.value) == (
        "the database is at revision 0999_newer, which this version does not have: install the newer version again; to"
        f" go back, it does `casebank migrate {HEAD}` first"
    )
    assert await revision(connection) == "0999_newer"
    await connection.close()


async def test_a_login_without_rights_a_missing_database_and_an_unknown_revision_are_one_line_each(
    postgres: EmbeddedPostgres, url: str
):
    owner = await connected(url)
    await owner.execute(f"CREATE ROLE weak_{(name := uuid4().hex)} LOGIN")
    await owner.close()
    weak = postgres.url((await database_of(url)), f"weak_{name}")
    for place, revision, words in (
        (weak, "head", "the login may not migrate"),
        (postgres.url("nowhere"), "head", 'database "nowhere" does not exist'),
        (url, "0999", "0999"),
    ):
        with pytest.raises(MigrationRefused, match=words) as caught:
            await migrate(place, revision)
        assert "\n" not in str(caught.value)


async def test_a_login_that_is_no_superuser_is_told_all_that_it_lacks_and_migrates_once_it_has_it(
    postgres: EmbeddedPostgres,
):
    name, login = f"t{uuid4().hex}", f"plain_{uuid4().hex}"
    admin = await connected(postgres.url("postgres"))
    await admin.execute(f"CREATE DATABASE {name}")
    await admin.execute(f"CREATE ROLE {login} LOGIN")
    await admin.close()
    place, owner = postgres.url(name, login), await connected(postgres.url(name))
    with pytest.raises(MigrationRefused) as caught:
        await migrate(place)
    _, _, lacking = str(caught.value).partition("the login may not migrate as it is: ")
    statements = [each.partition(", in the database")[0] for each in lacking.split("; ")]
    assert [each.split()[0] for each in statements] == ["GRANT", "GRANT", "CREATE"]
    assert await owner.fetchval("SELECT count(*) FROM pg_class WHERE relname = 'alembic_version'") == 0
    for statement in statements:
        await owner.execute(statement)
    await migrate(place)
    with pytest.raises(MigrationRefused, match=f"log in as {login}"):
        await migrate(postgres.url(name, await another(owner)))
    await migrate(place, "base")
    await migrate(place)
    assert await revision(owner) == HEAD
    await owner.close()


async def another(owner: asyncpg.Connection) -> str:
    await owner.execute(f"CREATE ROLE {(name := f'plain_{uuid4().hex}')} LOGIN")
    return name


async def database_of(url: str) -> str:
    connection = await connected(url)
    name = await connection.fetchval("SELECT current_database()")
    await connection.close()
    return name
