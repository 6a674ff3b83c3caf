"""Steps of a run that is being deleted."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import asyncpg

from tests.writer.blocked import begin_blocked
from tests.writer.conftest import Bank
from tests.writer.under_way import run_row, take_step
from writer.retain.under_way import lock_run
from writer.rights.edit import delete_run


async def test_a_step_that_waited_for_the_deletion_of_its_run_begins_the_run_anew(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    await take_step(bank, user, run_id := uuid4())
    async with asyncio.timeout(60):
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await lock_run(connection, user, run_id)
            taking = await begin_blocked(owner, take_step(bank, user, run_id, 2))
            await delete_run(connection, bank.author(user), run_id)
        await taking
    assert (await run_row(bank, user, run_id)).step_count == 1
