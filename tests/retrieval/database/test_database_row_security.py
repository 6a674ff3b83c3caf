"""Who may see what, asked of the database itself: row by row, and table by table."""

import hashlib
import json
from datetime import UTC, datetime

import asyncpg
import pytest
from sqlalchemy import text

from app.db import SERVICE_ROLE, WORKER_ROLE, service_database
from app.providers.wordllama import WordLlamaEmbedder
from retrieval.ranking.slate import Question
from retrieval.retrieve import Reader
from retrieval.schema import USER_TABLES, metadata
from retrieval.search.candidates import Search
from tests.retrieval.database.conftest import GONE, NAMES, A, B, Bank, owners_of


def digest(user: str) -> str:
    return hashlib.sha256(user.encode()).hexdigest()


def belongs(table: str, user: str) -> str:
    """What stands in ``user_sub`` of the user's rows; a tombstone does not name whom it is for."""
    return digest(user) if table == "erasures" else user


# Rows


@pytest.mark.parametrize("table", NAMES)
async def test_without_a_user_there_are_no_rows(table: str, bank: Bank):
    assert await owners_of(bank.owner, table) == ({digest(GONE)} if table == "erasures" else {A, B})
    assert await owners_of(bank.service, table) == set()
    await bank.become("")
    assert await owners_of(bank.service, table) == set()


@pytest.mark.parametrize("table", NAMES)
async def test_a_user_sees_their_own_rows_alone(table: str, bank: Bank):
    for user in (A, B, GONE, "nobody"):
        await bank.become(user)
        mine = {belongs(table, user)} & await owners_of(bank.owner, table)
        assert await owners_of(bank.service, table) == mine


@pytest.mark.parametrize("table", NAMES)
async def test_a_user_cannot_insert_a_row_for_another(table: str, bank: Bank):
    theirs = belongs(table, GONE if table == "erasures" else B)
    stored = await bank.owner.fetchval(
        f"SELECT row_to_json(t) FROM {table} t WHERE user_sub = $1 LIMIT 1",  # noqa: S608
        theirs,
    )
    columns = ", ".join(column.name for column in metadata.tables[table].c if column.computed is None)
    copy = f"INSERT INTO {table} ({columns}) SELECT {columns} FROM json_populate_record(null::{table}, $1)"  # noqa: S608
    await bank.become(A)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        async with bank.service.transaction():
            await bank.service.execute(copy, stored)
    # the same statement for oneself gets past the policy, so it was the policy that refused
    mine = json.dumps(json.loads(stored) | {"user_sub": belongs(table, A)})
    try:
        async with bank.service.transaction():
            await bank.service.execute(copy, mine)
    except asyncpg.IntegrityConstraintViolationError:
        pass  # a foreign key, or a row of the same key


@pytest.mark.parametrize("table", [table.name for table in USER_TABLES])
async def test_a_user_can_neither_change_nor_delete_nor_give_away_across_users(table: str, bank: Bank):
    await bank.become(A)
    assert await bank.service.execute(f"UPDATE {table} SET user_sub = user_sub WHERE user_sub = $1", B) == "UPDATE 0"  # noqa: S608
    assert await bank.service.execute(f"DELETE FROM {table} WHERE user_sub = $1", B) == "DELETE 0"  # noqa: S608
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        await bank.service.execute(f"UPDATE {table} SET user_sub = $1", B)  # noqa: S608


async def test_a_tombstone_cannot_be_changed_or_taken_away(bank: Bank):
    await bank.become(GONE)
    for statement in ("UPDATE erasures SET erased_at = now()", "DELETE FROM erasures"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with bank.service.transaction():
                await bank.service.execute(statement)


async def test_the_user_of_a_transaction_is_forgotten_when_it_ends(filled: str):
    count = text("SELECT count(*) FROM cases")
    async with service_database(filled, pool_size=1) as database:
        async with database.as_user(A, datetime.now(UTC)) as connection:
            assert await connection.scalar(count) == 1
        async with database.engine.connect() as connection:
            assert await connection.scalar(count) == 0


async def test_the_user_of_a_fast_statement_is_forgotten_when_it_ends(filled: str):
    async with service_database(filled, pool_size=1) as database:
        question = Question(Search(agent_key="gardener", query="garden"))
        assert (await Reader(database, WordLlamaEmbedder()).retrieve(A, datetime.now(UTC), question)).choices
        async with database.fast(A, datetime.now(UTC)) as connection:
            assert await connection.driver.fetchval("SELECT count(*) FROM cases") == 0
            assert await connection.driver.fetchval("SELECT current_setting('synchronous_commit')") == "on"


# The shared prior, whose rows belong to nobody


async def insert_prior(connection: asyncpg.Connection, *contributors: str) -> None:
    await connection.execute(
        "INSERT INTO policies (user_sub, agent_key, version, status, feature_version, weights, checksum, blend,"
        " decisions, metrics, contributors) VALUES ('', '', 1, 'retired', 2, '', '', 1, 9, '{}', $1)",
        [digest(user) for user in contributors],
    )


async def priors(connection: asyncpg.Connection) -> int:
    return await connection.fetchval("SELECT count(*) FROM policies WHERE user_sub = ''")


async def test_only_the_worker_writes_a_shared_prior_and_it_sees_no_other_policy(bank: Bank):
    for user in (A, ""):
        await bank.become(user)
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
            async with bank.service.transaction():
                await insert_prior(bank.service, A)
    await bank.service.execute(f"SET LOCAL ROLE {WORKER_ROLE}")
    await insert_prior(bank.service, A)
    assert await owners_of(bank.service, "policies") == {""}
    assert await bank.service.execute("DELETE FROM policies") == "DELETE 1"
    assert await owners_of(bank.owner, "policies") == {A, B}
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await bank.service.execute("UPDATE policies SET blend = 0")


async def test_a_shared_prior_is_read_by_all_and_changed_by_nobody(bank: Bank):
    await bank.service.execute(f"SET LOCAL ROLE {WORKER_ROLE}")
    await insert_prior(bank.service, A, B)
    await bank.service.execute(f"SET LOCAL ROLE {SERVICE_ROLE}")
    for user in (A, B, "nobody"):
        await bank.become(user)
        assert await priors(bank.service) == 1
        assert await bank.service.execute("UPDATE policies SET blend = 0 WHERE user_sub = ''") == "UPDATE 0"


async def test_whoever_weighed_in_on_a_shared_prior_may_delete_it_and_nobody_else(bank: Bank):
    await bank.service.execute(f"SET LOCAL ROLE {WORKER_ROLE}")
    await insert_prior(bank.service, A)
    await bank.service.execute(f"SET LOCAL ROLE {SERVICE_ROLE}")
    for user, gone in ((B, 0), ("", 0), (A, 1)):
        await bank.become(user)
        assert await bank.service.execute("DELETE FROM policies WHERE user_sub = ''") == f"DELETE {gone}"
