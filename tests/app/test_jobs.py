"""What the service does by the clock: it keeps to the settings."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest

from app.jobs import upkeep
from app.runtime import running
from app.settings import Settings
from writer.author import Author
from writer.retain.retain import retain
from writer.run import FinishedRun


@pytest.mark.parametrize(("kept_days", "left"), [(1, 0), (3, 1)])
async def test_upkeep_keeps_pruned_cases_for_as_long_as_the_settings_say(
    database_url: str, tmp_path: Path, kept_days: int, left: int
):
    settings = Settings(
        home=tmp_path,
        database_url=database_url,
        master_key=os.urandom(32).hex(),
        pruned_kept_days=kept_days,
        upkeep_every_s=0.01,
    )
    owner = await asyncpg.connect(database_url.replace("+asyncpg", ""))
    async with running(settings) as runtime:
        run = FinishedRun(agent="agent", task="a task", outcome="success")
        user = f"kept-for-{kept_days}"
        await retain(runtime.database, runtime.keyring, run, Author(user, "test", datetime.now(UTC)))
        await owner.execute("UPDATE cases SET status = 'pruned', pruned_at = now() - interval '2 days'")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(upkeep(runtime), 1)
    assert await owner.fetchval("SELECT count(*) FROM cases WHERE user_sub = $1", user) == left
    await owner.close()
