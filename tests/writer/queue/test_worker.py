"""The worker: every retained run becomes one result, whatever other workers and its own pace do."""

import asyncio
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal
from uuid import uuid4

import pytest
from sqlalchemy import select, text

from retrieval.errors import EmbedderMisbehaved, EmbedderUnavailable
from retrieval.ports import Vectors
from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.cases import case_embeddings
from retrieval.tables.decisions import rewards
from tests.fakes.openai_server import OpenAIServer
from tests.writer.conftest import (
    AGENT,
    PACE,
    Bank,
    Gated,
    MakeWorker,
    drain,
    keep,
    lost_leases,
    states,
)
from writer.profiles import lock_profile
from writer.queue.lease import Lease
from writer.queue.worker import Worker
from writer.rights.edit import delete_case


async def test_several_workers_finish_every_case_of_every_user_once(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    users = [f"{user}-{letter}" for letter in "abc"]
    await asyncio.gather(*(keep(bank, name, f"task {number}") for name in users for number in range(20)))
    await asyncio.gather(*(drain(worker_on(server, replace(PACE, batch=4))) for _ in range(4)))
    for name in users:
        assert Counter((row.status, row.attempts) for row in await states(bank, name)) == {("ready", 1): 20}
        assert (await bank.counts(name))["case_embeddings"] == 20
    asked = Counter(text for request in server.requests for text in request.payload["input"])
    assert set(asked.values()) == {len(users)}


async def test_a_worker_holds_one_decrypted_payload_at_a_time(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    size, number = 2 << 20, 60
    payload = {"prompt_snapshot": "x" * size, "tool_traces": [], "turns": [], "procedure": None}
    await bank.add(user, *({"status": "pending", "payload": payload} for _ in range(number)))
    worker = worker_on(server)
    tracemalloc.start()
    try:
        assert await worker.run_once() == number
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert {row.status for row in await states(bank, user)} == {"ready"}
    assert (await bank.counts(user))["reflections"] == 0
    assert peak < size * number / 2


async def test_a_worker_paused_past_its_lease_cannot_finish_what_another_finished(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await bank.add(user, {"task": "rake the leaves"})
    search = CaseSearch(agent_key=AGENT, query="leaves")
    reader = Reader(bank.database, worker_on(server).embedder)
    slate = await reader.retrieve(user, datetime.now(UTC), Question(search))
    case_id = await keep(bank, user, retrieval_id=slate.retrieval_id)
    with Gated() as gate:
        late = asyncio.create_task(worker_on(gate, replace(PACE, lease=timedelta(0))).run_once())
        await asyncio.to_thread(gate.asked.wait)
        assert await worker_on(server).run_once() == 1
        (before,) = [row for row in await states(bank, user) if row.id == case_id]
        lost = lost_leases()
        gate.go.set()
        assert await late == 1
    (after,) = [row for row in await states(bank, user) if row.id == case_id]
    assert lost_leases() == lost + 1
    assert (before.status, before.attempts) == ("ready", 2)
    assert after == before
    assert len(await bank.read(user, select(case_embeddings).where(case_embeddings.c.case_id == case_id))) == 1
    assert len(await bank.read(user, select(rewards).where(rewards.c.decision_id == slate.retrieval_id))) == 1


async def test_a_paused_worker_that_then_fails_does_not_hand_back_what_another_finished(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user)
    with Gated() as gate:
        late = asyncio.create_task(worker_on(gate, replace(PACE, lease=timedelta(0))).run_once())
        await asyncio.to_thread(gate.asked.wait)
        await worker_on(server).run_once()
        gate.dimension += 1
        gate.go.set()
        await late
    (row,) = await states(bank, user)
    assert (row.status, row.last_error) == ("ready", None)


async def test_a_case_deleted_while_the_worker_holds_it_stays_deleted(bank: Bank, worker_on: MakeWorker, user: str):
    case_id = await keep(bank, user)
    with Gated() as gate:
        late = asyncio.create_task(worker_on(gate).run_once())
        await asyncio.to_thread(gate.asked.wait)
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await delete_case(connection, bank.keyring, bank.author(user), case_id)
        lost = lost_leases()
        gate.go.set()
        await late
    assert lost_leases() == lost + 1
    counts = await bank.counts(user)
    assert (counts["cases"], counts["case_embeddings"]) == (0, 0)


class Awaited(asyncio.Event):
    """An event that tells when it is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.awaited.set()
        return await super().wait()


async def test_new_cases_have_their_turn_while_a_worker_looks_for_a_profile_that_is_due(
    server: OpenAIServer, worker_on: MakeWorker, user: str
):
    handler = worker_on(server).cases
    await handler.handle([Lease(f"{user}-{n}", uuid4(), AGENT, 1, uuid4(), datetime.now(UTC)) for n in range(300)])
    turns = 0
    while await handler.replay(idle=True):
        turns += 1
    assert turns > 0


async def test_a_worker_that_is_woken_as_it_is_stopped_stops(server: OpenAIServer, worker_on: MakeWorker):
    worker = worker_on(server, replace(PACE, poll_s=60))
    worker.wakes.called = wake = Awaited()  # a worker with nothing to do waits for it
    working = asyncio.create_task(worker.run())
    async with asyncio.timeout(60):
        await wake.awaited.wait()
    worker.wake()
    working.cancel()
    await asyncio.wait({working}, timeout=60)
    assert working.cancelled()


async def test_a_worker_that_is_stopped_while_it_stores_a_batch_stops(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await asyncio.gather(*(keep(bank, user, f"task {number}") for number in range(3)))
    worker = worker_on(server, replace(PACE, poll_s=60))
    async with bank.database.as_user(user, datetime.now(UTC)) as holder:
        await lock_profile(holder, user, AGENT)
        working = asyncio.create_task(worker.run())
        await waits_for_a_lock(bank)
        working.cancel()
        await asyncio.wait({working}, timeout=60)
        assert working.cancelled()
        assert [(row.status, row.attempts, row.lease_token) for row in await states(bank, user)] == [
            ("pending", 0, None)
        ] * 3


async def test_a_worker_that_is_stopped_after_the_end_of_its_lease_leaves_the_attempt_counted(
    bank: Bank, worker_on: MakeWorker, user: str
):
    await keep(bank, user)
    with Gated() as gate:
        working = asyncio.create_task(worker_on(gate, replace(PACE, lease=timedelta(0), poll_s=60)).run())
        await asyncio.to_thread(gate.asked.wait)
        working.cancel()
        await asyncio.wait({working}, timeout=60)
    assert [(row.status, row.attempts) for row in await states(bank, user)] == [("pending", 1)]


@dataclass
class ClosesAsItIsCancelled:
    """An embedder that turns a cancellation into an error of its own, as some drivers do."""

    error: Exception
    model: str = "closes"
    dimension: int = 8
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def embed(self, _texts: Sequence[str]) -> Vectors:
        self.asked.set()
        try:
            return await asyncio.Future[Vectors]()
        except asyncio.CancelledError:
            raise self.error from None

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("error", [EmbedderUnavailable("the connection was closed"), EmbedderMisbehaved("it was cut")])
async def test_a_worker_stops_although_its_embedder_turns_the_cancellation_into_an_error(
    bank: Bank, user: str, error: Exception
):
    await keep(bank, user)
    embedder = ClosesAsItIsCancelled(error)
    working = asyncio.create_task(Worker(bank.database, embedder, bank.keyring, pace=replace(PACE, poll_s=60)).run())
    await embedder.asked.wait()
    working.cancel()
    assert await asyncio.wait({working}, timeout=60) == ({working}, set())
    assert [(row.status, row.attempts) for row in await states(bank, user)] == [("pending", 0)]


async def waits_for_a_lock(bank: Bank) -> None:
    """Returns when a statement waits for a lock that another transaction has."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    async with asyncio.timeout(60), bank.database.engine.connect() as connection:
        while not await connection.scalar(waiting):  # noqa: ASYNC110 - Postgres tells nobody
            await asyncio.sleep(0.01)
