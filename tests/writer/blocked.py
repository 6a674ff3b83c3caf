"""Waits until other transactions wait for a lock, so that a test decides which of them comes first."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import asyncpg

from tests.cluster import CITUS_URL

_BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
if CITUS_URL is not None:
    _BLOCKED = "SELECT count(*) FROM citus_lock_waits"  # of all nodes


async def begin_blocked(owner: asyncpg.Connection, work: Coroutine[Any, Any, Any], count: int = 1) -> asyncio.Task[Any]:
    """Begins the work, and returns it once this number of transactions waits for a lock, or once it is done."""
    task = asyncio.ensure_future(work)
    while not task.done() and await owner.fetchval(_BLOCKED) < count:
        await asyncio.sleep(0.02)
        await owner.execute("SELECT pg_stat_clear_snapshot()")
    return task


async def both_at_once(owner: asyncpg.Connection, late: str, *works: Coroutine[Any, Any, Any]) -> None:
    """Begins the works one after the other, each once the ones before it wait, the first for the table ``late``."""
    async with asyncio.timeout(60):
        async with owner.transaction():
            await owner.execute(f"LOCK TABLE {late} IN SHARE MODE")
            begun = [await begin_blocked(owner, work, number) for number, work in enumerate(works, start=1)]
        await asyncio.gather(*begun)
