"""Waits until other transactions wait for a lock, so that a test decides which of them comes first."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import asyncpg

_BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def begin_blocked(owner: asyncpg.Connection, work: Coroutine[Any, Any, Any], count: int = 1) -> asyncio.Task[Any]:
    """Begins the work, and returns it once this number of transactions waits for a lock, or once it is done."""
    task = asyncio.ensure_future(work)
    while not task.done() and await owner.fetchval(_BLOCKED) < count:
        await asyncio.sleep(0.02)
        await owner.execute("SELECT pg_stat_clear_snapshot()")
    return task
