"""Migrating to 0007 gives every stored vector, and every profile, the name of its space with the dimension in it."""

from uuid import uuid4

import asyncpg

from app.postgres import EmbeddedPostgres
from app.postgres.migrate import migrate
from app.providers.wordllama import WordLlamaEmbedder
from tests.conftest import new_database

TABLES = {
    "profiles": "embedding_model",
    "case_embeddings": "model",
    "procedures": "embedding_model",
    "decisions": "query_model",
}


async def names(connection: asyncpg.Connection) -> dict[str, list[str | None]]:
    return {
        table: sorted(row[0] for row in await connection.fetch(f"SELECT {column} FROM {table}"))  # noqa: S608
        for table, column in TABLES.items()
    }


async def fill(connection: asyncpg.Connection, user: str, model: str, dimension: int) -> None:
    """Puts one row into each table; what else a row would refer to is left out."""
    await connection.execute("SET session_replication_role = replica")
    vector = [1.0] + [0.0] * (dimension - 1)
    await connection.execute(
        "INSERT INTO profiles (user_sub, agent_key, embedding_model) VALUES ($1, 'a', $2)", user, model
    )
    await connection.execute(
        "INSERT INTO case_embeddings (user_sub, agent_key, model, case_id, dimension, embedding)"
        " VALUES ($1, 'a', $2, $3, $4, $5::real[]::vector)",
        *(user, model, uuid4(), dimension, vector),
    )
    await connection.execute(
        "INSERT INTO procedures (user_sub, id, version, agent_key, record, search_text, embedding_model, embedding)"
        " VALUES ($1, $2, 1, 'a', '{}', '', $3, $4::real[])",
        *(user, uuid4(), model, vector),
    )
    await connection.execute(
        "INSERT INTO decisions (user_sub, id, agent_key, query, mode, degraded, policy_version, feature_version, seed,"
        " arm, k, slate_propensity, candidate_ids, candidate_groups, candidate_sources, features, scores, tokens,"
        " query_model, query_vector) VALUES ($1, $2, 'a', 'q', 'hybrid', '{}', 'default', 1, 1, 'default', 4, 1, '{}',"
        " '{}', '{}', '', '{}', 0, $3, $4::real[])",
        *(user, uuid4(), model, vector),
    )


async def test_names_of_spaces_get_their_dimension_and_lose_it_again(postgres: EmbeddedPostgres):
    url = await new_database(postgres)
    await migrate(url, "0006")
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    bundled = WordLlamaEmbedder.model
    await fill(connection, "alice", "text-embedding-3-small", 3)
    await fill(connection, "bob", bundled, 2)
    before = await names(connection)
    await migrate(url)
    assert await names(connection) == {table: ["text-embedding-3-small@3", bundled] for table in TABLES}
    await migrate(url, "0006")
    assert await names(connection) == before == {table: ["text-embedding-3-small", bundled] for table in TABLES}
    await connection.close()
