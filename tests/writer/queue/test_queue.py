"""The queue: a lease for each claim, a delay after each failure, an end after too many, and a way back."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest
import uuid_utils.compat as uuids
from sqlalchemy import Table, func, select
from sqlalchemy.dialects.postgresql.asyncpg import dialect

from retrieval.tables.cases import cases, inserted_memories
from retrieval.tables.memories import memories
from retrieval.tables.procedures import reflections
from retrieval.tables.sessions import sessions
from tests.cluster import one_postgres
from tests.fakes.openai_server import Fault, OpenAIServer
from tests.writer.conftest import (
    DIMENSION,
    PACE,
    Bank,
    Gated,
    MakeWorker,
    Picky,
    drain,
    keep,
    states,
    wake_all,
)
from writer.queue import statements
from writer.queue.lease import Lease
from writer.queue.queue import Pace
from writer.queue.worker import Worker


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


@pytest.fixture
def picky() -> Iterator[Picky]:
    with Picky(DIMENSION) as server:
        yield server


async def test_the_delay_doubles_with_each_failure_up_to_its_bound(
    bank: Bank, picky: Picky, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    worker = worker_on(picky, Pace(backoff_s=1_000, backoff_max_s=4_000, max_attempts=6))
    case_id = await keep(bank, user, "pour the poison")
    for longest in (1_000, 2_000, 4_000, 4_000, 4_000):
        before = await owner.fetchval("SELECT clock_timestamp()")
        await worker.run_once()
        after = await owner.fetchval("SELECT clock_timestamp()")
        available = await owner.fetchval("SELECT available_at FROM cases WHERE id = $1", case_id)
        assert before + timedelta(seconds=longest / 2) <= available <= after + timedelta(seconds=longest)
        await wake_all(owner)


async def test_a_case_that_keeps_failing_is_dead_and_a_requeue_brings_it_back(  # noqa: PLR0913, PLR0917 - fixtures
    bank: Bank, picky: Picky, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    worker = worker_on(picky)
    await keep(bank, user, "pour the poison")
    for _ in range(PACE.max_attempts):
        assert await worker.run_once() == 1
        await wake_all(owner)
    (row,) = await states(bank, user)
    assert (row.status, row.attempts) == ("dead", PACE.max_attempts)
    assert row.last_error == "EmbedderMisbehaved"
    worker = worker_on(server)
    assert await worker.run_once() == 0
    async with bank.database.as_worker() as connection:
        requeued = (await connection.execute(statements.requeue_dead(f"{user}-b"))).all()
        assert requeued == []
        requeued = (await connection.execute(statements.requeue_dead(user))).all()
    assert [row.id for row in requeued] == [row.id]
    await drain(worker)
    (row,) = await states(bank, user)
    assert (row.status, row.attempts, row.last_error) == ("ready", 1, None)


async def test_a_run_of_the_past_that_a_worker_holds_has_not_waited_since_then(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await bank.add(user, {"status": "pending", "created_at": datetime(2024, 2, 29, tzinfo=UTC)})
    assert len(await worker_on(server).cases.queue.take(16)) == 1
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        (waiting,) = (await connection.execute(statements.depth())).all()
        now = await connection.scalar(select(func.now()))
    assert timedelta(0) <= now - waiting.oldest < timedelta(hours=1)


async def fail_beyond_the_attempts(worker: Worker, server: OpenAIServer, owner: asyncpg.Connection) -> None:
    """Lets the embedder be out for more attempts on the one case than a row has."""
    server.fault = Fault.STATUS_500
    for _ in range(PACE.max_attempts + 2):
        assert await worker.run_once() == 1
        await wake_all(owner)


async def test_an_outage_however_long_kills_no_case(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    worker = worker_on(server)
    await keep(bank, user)
    await fail_beyond_the_attempts(worker, server, owner)
    (row,) = await states(bank, user)
    assert (row.status, row.last_error) == ("pending", "_NoAnswer")
    server.fault = None
    await drain(worker)
    assert [row.status for row in await states(bank, user)] == ["ready"]


@pytest.mark.parametrize("end", ["death", "error"])
async def test_an_outage_counts_as_one_attempt_at_most(  # noqa: PLR0913, PLR0917 - fixtures
    bank: Bank, picky: Picky, worker_on: MakeWorker, owner: asyncpg.Connection, user: str, end: str
):
    worker = worker_on(picky)
    await keep(bank, user, "pour the poison")
    await fail_beyond_the_attempts(worker, picky, owner)
    picky.fault = None
    for attempt in range(2, PACE.max_attempts):
        if end == "death":
            await worker.cases.queue.take(16)  # and is never heard of again
            await wake_all(owner)  # its lease ends
            await worker_on(picky).cases.queue.take(0)
        else:
            await worker.run_once()
            await wake_all(owner)
        assert [(row.status, row.attempts) for row in await states(bank, user)] == [("pending", attempt)]
    await worker.run_once()
    assert [(row.status, row.attempts) for row in await states(bank, user)] == [("dead", PACE.max_attempts)]


async def test_a_case_that_takes_its_workers_down_is_dead_after_as_many_and_takes_no_other_along(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, empty_queue: None, user: str
):
    poison, *others = [await keep(bank, f"{user}-b", f"task {number}") for number in range(3)]
    others += [await keep(bank, user, f"task {number}") for number in range(5)]
    worker = worker_on(server, replace(PACE, lease=timedelta(0)))  # the next worker finds it dead

    async def dies_with_the_poison(leases: Sequence[Lease]) -> None:
        if poison in [each.row_id for each in leases]:
            raise Died
        await worker.cases.handle(leases)

    for _ in range(PACE.max_attempts + len(others) + 2):
        with suppress(Died):
            await worker.cases.queue.serve(16, dies_with_the_poison)
    by_id = {row.id: row for name in (user, f"{user}-b") for row in await states(bank, name)}
    assert (by_id[poison].status, by_id[poison].last_error) == ("dead", "the worker died with it")
    assert {(by_id[other].status, by_id[other].attempts) for other in others} == {("ready", 2)}


async def test_a_row_whose_worker_died_fills_up_no_batch_of_others(
    bank: Bank, worker_on: MakeWorker, server: OpenAIServer, empty_queue: None, user: str
):
    first, last = f"{user}-a", f"{user}-z"
    suspect = await keep(bank, first)
    queue = worker_on(server, replace(PACE, lease=timedelta(0))).cases.queue
    assert [lease.row_id for lease in await queue.take(16)] == [suspect]  # and is never heard of again
    others = {await keep(bank, last, f"task {number}") for number in range(2)}
    assert {lease.row_id for lease in await queue.take(16)} == others
    assert [lease.row_id for lease in await queue.take(16)] == [suspect]


class Died(Exception):
    """Stands for the end of a worker's process."""


async def waiting(bank: Bank, user: str, cases_of_theirs: int) -> None:
    await bank.add(user, *({"status": "pending"} for _ in range(cases_of_theirs)))


async def claimed(bank: Bank, batch: int, after: str = "") -> list[str]:
    """Whose cases a worker gets, one entry for each."""
    async with bank.database.as_worker() as connection:
        given = {"token": uuids.uuid7(), "lease": timedelta(minutes=1), "batch": batch, "after": after}
        rows = await connection.execute(statements.claim(cases), {**given, "died_too": True})
        return [row.user_sub for row in rows]


@pytest.fixture
async def empty_queue(owner: asyncpg.Connection) -> None:
    await owner.execute("UPDATE cases SET status = 'ready' WHERE status = 'pending'")


@one_postgres
async def test_nobody_waits_behind_all_that_another_has_retained(bank: Bank, empty_queue: None):
    flood, guests = f"a-flood-{uuid4()}", [f"b-guest-{number}-{uuid4()}" for number in range(3)]
    await waiting(bank, flood, 100)
    for guest in guests:
        await waiting(bank, guest, 2)
    assert Counter(await claimed(bank, 8)) == {flood: 2, **dict.fromkeys(guests, 2)}
    assert Counter(await claimed(bank, 8)) == {flood: 8}


@one_postgres
async def test_a_users_turn_is_a_quarter_of_a_batch(bank: Bank, empty_queue: None):
    users = [f"{letter}-{uuid4()}" for letter in "abcdef"]
    for user in users:
        await waiting(bank, user, 8)
    assert Counter(await claimed(bank, 8)) == dict.fromkeys(users[:4], 2)
    assert Counter(await claimed(bank, 8, after=users[3])) == dict.fromkeys(users[4:], 4)


@one_postgres
async def test_turns_go_on_after_the_user_who_was_served_last(bank: Bank, empty_queue: None):
    users = [f"{letter}-{uuid4()}" for letter in "abcde"]
    for user in users:
        await waiting(bank, user, 1)
    first = sorted(await claimed(bank, 2))
    assert first == users[:2]
    assert sorted(await claimed(bank, 2, after=first[-1])) == users[2:4]
    assert await claimed(bank, 2, after=users[-1]) == []
    assert await claimed(bank, 2) == users[4:]


async def test_a_worker_begins_with_the_first_users_again_after_the_last_ones(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, empty_queue: None
):
    worker = worker_on(server, Pace(batch=2))
    last = f"z-{uuid4()}"
    await keep(bank, last)
    assert await worker.run_once() == 1
    first = f"a-{uuid4()}"
    await keep(bank, first)
    assert await worker.run_once() == 1
    assert [row.status for row in await states(bank, first)] == ["ready"]


@one_postgres
async def test_two_workers_that_claim_at_the_same_moment_get_a_batch_each(bank: Bank, empty_queue: None):
    await waiting(bank, f"a-{uuid4()}", 40)
    batches = await asyncio.gather(*(claimed(bank, 8) for _ in range(3)))
    assert [len(batch) for batch in batches] == [8, 8, 8]


@one_postgres
@pytest.mark.parametrize(
    "queue", [cases, inserted_memories, memories, reflections, sessions], ids=lambda table: table.name
)
async def test_counting_a_queue_reads_its_pending_and_its_dead_rows_alone(owner: asyncpg.Connection, queue: Table):
    counted = statements.depth(queue).compile(dialect=dialect(), compile_kwargs={"literal_binds": True})
    async with owner.transaction():
        await owner.execute("SET LOCAL enable_seqscan = off")
        plan = "\n".join(row[0] for row in await owner.fetch(f"EXPLAIN {counted}"))
    assert re.findall(r"\b\w+_idx\b", plan) == [f"{queue.name}_queue_idx", f"{queue.name}_dead_idx"]
    assert "Seq Scan" not in plan
