"""Silent runs: each is ended as aborted, whatever another run is like."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import select, update

from retrieval.tables.cases import cases
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import runs
from tests.fakes.openai_server import OpenAIServer
from tests.writer.blocked import both_at_once
from tests.writer.conftest import Bank, MakeWorker, drain, states
from tests.writer.under_way import run_row, take_step
from writer.rights.edit import delete_case
from writer.upkeep.prune import BATCH
from writer.upkeep.silent_runs import abort_all


@pytest.fixture(autouse=True)
async def no_runs_left(owner: asyncpg.Connection) -> AsyncIterator[None]:
    """The bank of a module is one, and upkeep goes over every user."""
    yield
    await owner.execute("DELETE FROM runs")


async def end_silent(bank: Bank) -> int:
    return await abort_all(bank.database, bank.keyring, silent_for=timedelta())


async def test_a_run_that_goes_on_after_its_case_was_deleted_ends_too_and_stops_no_other(bank: Bank, user: str):
    run_id, others, other = uuid4(), uuid4(), f"user-{uuid4()}"
    await take_step(bank, user, run_id)
    assert await end_silent(bank) == 1
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        case_id = (await run_row(bank, user, run_id)).case_id
        await delete_case(connection, bank.keyring, bank.author(user), case_id)
    await take_step(bank, user, run_id, 2)
    await take_step(bank, other, others)
    assert await end_silent(bank) == 2
    assert (await run_row(bank, other, others)).status == "aborted"
    (case,) = await bank.read(user, select(cases.c.task, cases.c.step_count).where(cases.c.user_sub == user))
    assert tuple(case) == ("task deleted", 1)


async def test_a_task_that_is_longer_without_its_secrets_does_not_keep_a_run_from_its_end(bank: Bank, user: str):
    await take_step(bank, user, run_id := uuid4(), task=("password: 12a! " * 1_400)[:20_000])
    assert await end_silent(bank) == 1
    assert (await run_row(bank, user, run_id)).status == "aborted"


async def test_runs_that_cannot_be_ended_keep_no_later_run_from_its_end(bank: Bank, user: str):
    await take_step(bank, user, run_id := uuid4())
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        run = dict((await connection.execute(select(runs).where(runs.c.id == run_id))).mappings().one())
        broken = {"words": b"cut", "last_step_at": run["last_step_at"] - timedelta(hours=1)}
        await connection.execute(runs.insert(), [{**run, **broken, "id": uuid4()} for _ in range(BATCH)])
    assert await end_silent(bank) == 1
    assert (await run_row(bank, user, run_id)).status == "aborted"


async def test_a_run_that_cannot_be_prepared_stays_and_stops_no_other(bank: Bank, user: str):
    secret, other = f"password=4f9Kx2_{uuid4().hex}", f"user-{uuid4()}"
    await take_step(bank, user, run_id := uuid4())
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:  # a name from before a stricter rule
        await connection.execute(profiles.insert().values(user_sub=user, agent_key=secret))
        await connection.execute(update(runs).where(runs.c.user_sub == user).values(agent_key=secret))
    await take_step(bank, other, others := uuid4())
    assert await end_silent(bank) == 1
    assert (await run_row(bank, user, run_id)).status == "under_way"
    assert (await run_row(bank, other, others)).status == "aborted"


async def test_an_aborted_run_keeps_its_case_when_an_equal_one_goes_on(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    for run_id in (first := uuid4(), second := uuid4()):
        await take_step(bank, user, run_id)
    assert await end_silent(bank) == 2
    await drain(worker_on(server))
    await take_step(bank, user, first, 2)
    (left,) = await states(bank, user)
    assert left.id == (await run_row(bank, user, second)).case_id
    assert (left.status, left.merged_into) == ("ready", None)


async def test_a_run_that_takes_a_step_just_before_its_end_goes_on(bank: Bank, user: str, owner: asyncpg.Connection):
    await take_step(bank, user, run_id := uuid4())
    await both_at_once(owner, "run_steps", take_step(bank, user, run_id, 2), end_silent(bank))
    run = await run_row(bank, user, run_id)
    assert (run.status, run.step_count, run.case_id) == ("under_way", 2, None)
