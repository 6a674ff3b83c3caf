"""Steps of a run that is being deleted, and of one that ends."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import asyncpg

from tests.writer.blocked import begin_blocked
from tests.writer.conftest import Bank, calls_on_the_loop, keep, states
from tests.writer.under_way import run_row, say, take_step
from writer.privacy.seal import unseal_sized
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


async def test_the_steps_and_turns_of_a_run_that_ends_are_decrypted_beside_the_event_loop(bank: Bank, user: str):
    await take_step(bank, user, run_id := uuid4())
    await say(bank, user, "chat", "hello")
    with calls_on_the_loop(unseal_sized) as callers:
        await take_step(bank, user, run_id)  # sent again
        await keep(bank, user, run_id=run_id, session_id="chat")
    assert callers == []
    (case,) = await states(bank, user)
    assert case.tools == ["pour"]
