"""The scratch database is the operator's own, and does not outlive it."""

import asyncpg

from app.demo.operator.scratch import scratch_database
from app.postgres import EmbeddedPostgres
from app.postgres.pools import dsn


async def test_the_scratch_database_is_gone_afterwards(postgres: EmbeddedPostgres):
    async with scratch_database(postgres.url("postgres"), budget=3):
        pass
    admin = await asyncpg.connect(dsn(postgres.url("postgres")))
    own = await admin.fetchval("SELECT count(*) FROM pg_database WHERE datname LIKE 'casebank_demo_%'")
    await admin.close()
    assert own <= 2  # the two of this module's fixtures
