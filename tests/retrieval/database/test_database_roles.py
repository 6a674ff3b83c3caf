"""The roles: plain ones that own nothing, each with the rights that it needs."""

from datetime import UTC, datetime

import asyncpg
import pytest
from sqlalchemy import text

from app.db import SERVICE_ROLE, WORKER_ROLE, service_database
from retrieval.schema import policies
from tests.retrieval.database.conftest import NAMES, TABLES, A, B, Bank, owners_of


async def test_the_worker_sees_of_everybody_who_waits_and_nothing_of_what_they_wrote(bank: Bank):
    await bank.service.execute(f"SET LOCAL ROLE {WORKER_ROLE}")
    assert await owners_of(bank.service, "cases") == {A, B}
    for column in ("task", "plan", "payload", "search_text", "tags", "reward", "*"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with bank.service.transaction():
                await bank.service.fetch(f"SELECT {column} FROM cases")  # noqa: S608


async def test_the_worker_has_exactly_the_rights_it_needs(bank: Bank):
    async def allowed(right: str) -> dict[str, set[str]]:
        statement = "SELECT has_column_privilege($1, $2, $3, $4)"
        granted: dict[str, set[str]] = {}
        for table in TABLES:
            for column in table.c:
                if await bank.owner.fetchval(statement, WORKER_ROLE, table.name, column.name, right):
                    granted.setdefault(table.name, set()).add(column.name)
        return granted

    queue = {"status", "attempts", "available_at", "lease_token"}
    prior = {"policies": {column.name for column in policies.c}}
    assert await allowed("SELECT") == prior | {
        "cases": queue | {"user_sub", "id", "agent_key", "created_at"},
        "profiles": {"user_sub", "agent_key", "embedding_model", "learning", "share_prior"},
    }
    assert await allowed("UPDATE") == {"cases": queue | {"last_error"}}
    assert await allowed("INSERT") == prior
    deletable = "SELECT has_table_privilege($1, $2, 'DELETE')"
    assert {name for name in NAMES if await bank.owner.fetchval(deletable, WORKER_ROLE, name)} == set(prior)


@pytest.mark.parametrize("role", [SERVICE_ROLE, WORKER_ROLE])
async def test_the_roles_are_plain_and_own_nothing(role: str, bank: Bank):
    row = await bank.owner.fetchrow("SELECT * FROM pg_roles WHERE rolname = $1", role)
    rights = ("rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb", "rolreplication", "rolcanlogin")
    assert [right for right in rights if row[right]] == []
    for catalog, owner in [
        ("pg_class", "relowner"),
        ("pg_proc", "proowner"),
        ("pg_namespace", "nspowner"),
        ("pg_type", "typowner"),
        ("pg_database", "datdba"),
    ]:
        owned = f"SELECT count(*) FROM {catalog} WHERE {owner} = $1"  # noqa: S608
        assert await bank.owner.fetchval(owned, row["oid"]) == 0, catalog
    assert not await bank.owner.fetchval("SELECT has_schema_privilege($1, 'public', 'CREATE')", role)


async def test_the_service_may_become_the_worker_and_nobody_else(bank: Bank):
    others = await bank.owner.fetch(
        "SELECT rolname FROM pg_roles WHERE pg_has_role($1, oid, 'MEMBER') AND rolname <> $1", SERVICE_ROLE
    )
    assert [row["rolname"] for row in others] == [WORKER_ROLE]
    inherits = await bank.owner.fetchval("SELECT pg_has_role($1, $2, 'USAGE')", SERVICE_ROLE, WORKER_ROLE)
    assert not inherits  # else the queue's policy would open every user's rows to the service


async def test_both_pools_of_the_service_are_the_plain_role(filled: str):
    async with service_database(filled) as database:
        async with database.engine.connect() as connection:
            assert await connection.scalar(text("SELECT current_user")) == SERVICE_ROLE
        async with database.fast(A, datetime.now(UTC)) as connection:
            assert await connection.driver.fetchval("SELECT current_user") == SERVICE_ROLE


async def test_row_level_security_is_forced_on_every_table(bank: Bank):
    rows = await bank.owner.fetch(
        "SELECT relname, relrowsecurity AND relforcerowsecurity AS forced FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')",
    )
    assert {row["relname"] for row in rows} == {*NAMES, "alembic_version"}
    assert {row["relname"] for row in rows if not row["forced"]} == {"alembic_version"}
    assert not await bank.owner.fetchval(f"SELECT has_table_privilege('{SERVICE_ROLE}', 'alembic_version', 'UPDATE')")
