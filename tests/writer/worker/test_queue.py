"""The queue: a lease for each claim, a delay after each failure, an end after too many, and a way back."""

import asyncio
from datetime import timedelta

import asyncpg
import uuid_utils.compat as uuids

from tests.fakes.openai_server import Fault, OpenAIServer
from tests.writer.conftest import (
    PACE,
    Bank,
    Gated,
    MakeWorker,
    drain,
    keep,
    states,
    wake_all,
)
from writer.worker import queue
from writer.worker.worker import Pace


async def test_a_case_is_nobody_elses_during_its_lease(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user)
    with Gated() as gate:
        first = asyncio.create_task(worker_on(gate).run_once())
        await asyncio.to_thread(gate.asked.wait)
        assert await worker_on(server).run_once() == 0
        gate.go.set()
        await first
    assert [(row.status, row.attempts) for row in await states(bank, user)] == [("ready", 1)]


async def test_the_delay_doubles_with_each_failure_up_to_its_bound(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    worker = worker_on(server, Pace(backoff_s=1_000, backoff_max_s=4_000, max_attempts=6))
    case_id = await keep(bank, user)
    server.fault = Fault.STATUS_500
    for longest in (1_000, 2_000, 4_000, 4_000, 4_000):
        before = await owner.fetchval("SELECT clock_timestamp()")
        await worker.run_once()
        after = await owner.fetchval("SELECT clock_timestamp()")
        available = await owner.fetchval("SELECT available_at FROM cases WHERE id = $1", case_id)
        assert before + timedelta(seconds=longest / 2) <= available <= after + timedelta(seconds=longest)
        await wake_all(owner)


async def test_a_case_that_keeps_failing_is_dead_and_a_requeue_brings_it_back(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    worker = worker_on(server)
    await keep(bank, user)
    server.fault = Fault.NAN
    for _ in range(PACE.max_attempts):
        assert await worker.run_once() == 1
        await wake_all(owner)
    (row,) = await states(bank, user)
    assert (row.status, row.attempts) == ("dead", PACE.max_attempts)
    assert row.last_error
    server.fault = None
    assert await worker.run_once() == 0
    async with bank.database.as_worker() as connection:
        raised = (await connection.execute(queue.raise_the_dead(f"{user}-b"))).all()
        assert raised == []
        raised = (await connection.execute(queue.raise_the_dead(user))).all()
    assert [row.id for row in raised] == [row.id]
    await drain(worker)
    (row,) = await states(bank, user)
    assert (row.status, row.attempts, row.last_error) == ("ready", 1, None)


async def test_an_outage_however_long_kills_no_case(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    worker = worker_on(server)
    await keep(bank, user)
    server.fault = Fault.STATUS_500
    for _ in range(PACE.max_attempts + 2):
        assert await worker.run_once() == 1
        await wake_all(owner)
    (row,) = await states(bank, user)
    assert (row.status, row.last_error) == ("pending", "_NoAnswer")
    server.fault = None
    await drain(worker)
    assert [row.status for row in await states(bank, user)] == ["ready"]


async def test_a_case_that_takes_its_workers_down_is_dead_after_as_many(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user)
    for _ in range(PACE.max_attempts):  # a worker that claims and is never heard of again
        async with bank.database.as_worker() as connection:
            claimed = await connection.execute(queue.claim(uuids.uuid7(), timedelta(0), 16))
            assert len(claimed.all()) == 1
    assert await worker_on(server).run_once() == 0
    (row,) = await states(bank, user)
    assert (row.status, row.last_error) == ("dead", "the worker died with it")
