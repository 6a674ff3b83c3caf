"""Runs the migrations on the connection in ``config.attributes`` or on the database of the settings."""

import asyncio

from sqlalchemy import Connection

from alembic import context
from app.postgres.pools import engine_of
from app.settings import Settings
from retrieval.tables.metadata import metadata

HNSW_INDEXES = "case_embeddings_hnsw_"
"""Prefix of the indexes that are in no metadata: the metadata must also fit a bank without pgvector."""
LOCK_TIMEOUT = "5s"
"""Longest wait of a migration for a table: queries that come meanwhile queue behind it."""
MIGRATION_LOCK = 0x6361736562616E6B
"""Advisory lock ("casebank" in ASCII): two processes that start at once migrate one after the other."""


def run(connection: Connection) -> None:
    """Runs the migrations on the connection, in one transaction under a lock."""
    context.configure(
        connection=connection,
        target_metadata=metadata,
        compare_type=True,
        transaction_per_migration=False,
        include_name=lambda name, kind, _parents: kind != "index" or not str(name).startswith(HNSW_INDEXES),
    )
    with context.begin_transaction():
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
        # set after that lock, which another process may hold for as long as its migration takes
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        # Citus creates no function after it changed shards beside each other; one Postgres ignores the setting
        connection.exec_driver_sql("SET LOCAL citus.multi_shard_modify_mode = sequential")
        context.run_migrations()


async def run_alone() -> None:
    """Runs the migrations on the database of the settings; for the ``alembic`` command itself."""
    url = Settings().database_url
    if url is None:
        raise SystemExit("set DATABASE_URL, or use `casebank migrate` for the embedded Postgres")
    engine = engine_of(url)
    async with engine.begin() as connection:
        await connection.run_sync(run)
    await engine.dispose()


if (connection := context.config.attributes.get("connection")) is not None:
    run(connection)
else:
    asyncio.run(run_alone())
