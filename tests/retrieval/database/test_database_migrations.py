"""Migrations: up and down on a bank with data, and a drift is found."""

from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from alembic.util.exc import CommandError
from sqlalchemy import select

from app.db import service_database
from app.migrate import check, migrate
from app.postgres.server import EmbeddedPostgres
from app.providers.wordllama import WordLlamaEmbedder
from retrieval.ranking.slate import Question
from retrieval.retrieve import Reader
from retrieval.schema import decisions, procedures
from retrieval.search.candidates import Search
from tests.conftest import new_database
from tests.retrieval.database.conftest import LESSON, NAMES, A, fill
from writer.training.decision_log import read
from writer.upkeep.hnsw import index_all


async def tables_of(url: str) -> set[str]:
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    await connection.close()
    return {row["tablename"] for row in rows}


async def test_migrations_go_up_and_down_and_up_again_on_a_bank_with_data(postgres: EmbeddedPostgres):
    url = await new_database(postgres)
    await fill(url)
    await check(url)
    await migrate(url, "base")
    assert await tables_of(url) == {"alembic_version"}
    await migrate(url)
    assert await tables_of(url) == {*NAMES, "alembic_version"}
    await check(url)
    await fill(url)


async def test_a_bank_that_learned_goes_back_to_before_it_could_and_forth(postgres: EmbeddedPostgres):
    url = await new_database(postgres)
    await fill(url)
    await migrate(url, "0002")
    assert await tables_of(url) == {*NAMES, "alembic_version"} - {"policies", "case_tools", "llm_usage"}
    with pytest.raises(CommandError):
        await check(url)
    await migrate(url)
    await check(url)
    async with service_database(url) as database:
        async with database.as_user(A, datetime.now(UTC)) as connection:
            assert (await connection.execute(select(decisions.c.feature_version))).all() == [(1,)]
            assert await read(connection, A, "gardener") == []  # what was known then is no longer there to learn from
        question = Question(Search(agent_key="gardener", query="garden"))
        assert (await Reader(database, WordLlamaEmbedder()).retrieve(A, datetime.now(UTC), question)).choices
        async with database.as_user(A, datetime.now(UTC)) as connection:
            assert len(await read(connection, A, "gardener")) == 1


async def test_a_bank_with_procedures_goes_a_migration_back_and_forth_and_keeps_them(postgres: EmbeddedPostgres):
    url = await new_database(postgres)
    await fill(url)
    await migrate(url, "-1")
    with pytest.raises(CommandError):
        await check(url)
    await migrate(url)
    await check(url)
    async with service_database(url) as database, database.as_user(A, datetime.now(UTC)) as connection:
        (kept,) = (await connection.execute(select(procedures).where(procedures.c.user_sub == A))).all()
    assert (kept.status, kept.version, kept.trigger) == ("active", 1, LESSON["semantic_description"])
    assert kept.source_case_ids == [kept.case_id]
    assert "turn" in kept.search_text


async def test_a_bank_with_indexed_vectors_goes_back_to_before_it_had_an_index_and_forth(postgres: EmbeddedPostgres):
    url = await new_database(postgres)
    await fill(url)
    async with service_database(url) as database:
        assert await index_all(database, large=1) == 2
    await check(url)
    await migrate(url, "0001")
    with pytest.raises(CommandError):
        await check(url)
    await migrate(url)
    await check(url)
    async with service_database(url) as database:
        assert await index_all(database, large=1) == 2
        question = Question(Search(agent_key="gardener", query="garden"))
        reader = Reader(database, WordLlamaEmbedder())
        for _ in range(2):
            (choice,) = (await reader.retrieve(A, datetime.now(UTC), question)).choices
            assert choice.row.task == f"water the garden of {A}"
            assert choice.row.approximate


async def test_migrating_what_is_up_to_date_changes_nothing(filled: str):
    connection = await asyncpg.connect(filled.replace("+asyncpg", ""))
    before = await connection.fetchval("SELECT count(*) FROM cases")
    await migrate(filled)
    assert await connection.fetchval("SELECT count(*) FROM cases") == before == 2
    await connection.close()


async def test_a_drift_is_found(postgres: EmbeddedPostgres):
    url = await new_database(postgres)
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    drifts: list[Any] = [
        "ALTER TABLE cases ADD COLUMN stray text",
        "ALTER TABLE cases DROP COLUMN stray, ALTER COLUMN task DROP NOT NULL",
        "ALTER TABLE cases ALTER COLUMN task SET NOT NULL; DROP INDEX cases_retrieval_idx",
        "CREATE INDEX cases_retrieval_idx ON cases (user_sub, retrieval_id); DROP INDEX cases_bank_idx",
    ]
    for drift in drifts:
        await connection.execute(drift)
        with pytest.raises(CommandError):
            await check(url)
    await connection.close()
