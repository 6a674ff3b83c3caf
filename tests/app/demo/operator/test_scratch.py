"""The scratch database is the operator's own, and does not outlive it."""

import asyncio

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


async def test_the_next_demo_drops_the_database_of_a_killed_one_and_not_of_a_running_one(postgres: EmbeddedPostgres):
    url = postgres.url("postgres")
    killed = await asyncpg.connect(dsn(url))
    left = f"casebank_demo_{killed.get_server_pid()}_left"
    await killed.execute(f"CREATE DATABASE {left} TEMPLATE template0")
    names = "SELECT datname FROM pg_database WHERE datname LIKE 'casebank_demo_%'"
    async with scratch_database(url, budget=3):
        running = {name for (name,) in await killed.fetch(names)}
        assert left in running
        killed.terminate()
        admin = await asyncpg.connect(dsn(url))
        async with asyncio.timeout(60):
            ended = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)"
            while not await admin.fetchval(ended, int(left.split("_")[2])):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)
        async with scratch_database(url, budget=3):
            assert {name for (name,) in await admin.fetch(names)} >= running - {left}
        assert left not in {name for (name,) in await admin.fetch(names)}
        await admin.close()
