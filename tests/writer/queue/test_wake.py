"""A worker is woken when there is work, and finds it by itself where no notice reaches it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy import event
from sqlalchemy.engine import make_url

from app.postgres import EmbeddedPostgres, running
from app.postgres.pools import dsn, service_database
from app.providers.openai import Endpoint, OpenAIEmbedder
from retrieval.database.rest import Rest
from tests.cluster import one_postgres
from tests.fakes.openai_server import Fault, OpenAIServer
from tests.fakes.sleepy_database import sleepy_database
from tests.processes import migrated_home
from tests.writer.conftest import DIMENSION, MASTER_KEY, PACE, PATIENT, Bank, MakeWorker, keep, states
from writer.privacy.keys import Keyring
from writer.queue.wake import Wake
from writer.queue.worker import Worker

SELDOM = replace(PACE, poll_s=3600, backoff_s=0.05)
"""A worker with this pace finds nothing in time by its own looks."""


@asynccontextmanager
async def at_work(*endless: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(each()) for each in endless]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)


async def idle(worker: Worker) -> None:
    """Waits until the worker has looked and found nothing."""

    async def looked() -> bool:
        return worker.looked_at is not None and worker.wakes.called.is_set() is False

    await until(looked)


async def ready(bank: Bank, user: str) -> None:
    async def done() -> bool:
        return [row.status for row in await states(bank, user)] == ["ready"]

    await until(done)


async def test_one_statement_asks_all_queues(bank: Bank, server: OpenAIServer, worker_on: MakeWorker):
    statements: list[str] = []
    engine = bank.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _c, _u, statement, *_: statements.append(statement))
    assert await worker_on(server).run_once() == 0
    assert [statement.split()[0] for statement in statements] == ["SET", "SELECT"]


async def test_a_call_wakes_the_worker_of_the_same_process(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    worker = worker_on(server, SELDOM)
    async with at_work(worker.run):
        await idle(worker)
        await keep(bank, user)
        worker.wake()
        await ready(bank, user)


async def test_a_worker_sleeps_no_longer_than_until_the_next_row_is_due(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    server.script(Fault.STATUS_500, Fault.STATUS_500, None)
    worker = worker_on(server, SELDOM)
    await keep(bank, user)
    async with at_work(worker.run):
        await ready(bank, user)


async def test_a_notice_wakes_the_worker_of_another_process(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, database_url: str
):
    worker = worker_on(server, SELDOM)
    async with service_database(database_url) as elsewhere, at_work(worker.run, worker.wakes.listen):
        await idle(worker)
        await keep(bank, user)
        await Wake(elsewhere, Rest(elsewhere)).notify()
        await ready(bank, user)


async def test_a_process_without_a_worker_of_its_own_passes_calls_on(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, database_url: str
):
    worker = worker_on(server, SELDOM)
    async with service_database(database_url) as elsewhere:
        there = Wake(elsewhere, Rest(elsewhere))
        async with at_work(worker.run, worker.wakes.listen, there.pass_on):
            await idle(worker)
            await keep(bank, user)
            there.called.set()
            await ready(bank, user)


async def test_a_lost_notice_costs_a_look_and_no_case(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    worker = worker_on(server, replace(PACE, poll_s=0.05))
    async with at_work(worker.run):
        await idle(worker)
        await keep(bank, user)
        await ready(bank, user)


async def test_a_listener_whose_connection_is_ended_listens_again_and_misses_nothing(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, owner: asyncpg.Connection
):
    worker = worker_on(server, SELDOM)
    listening = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"

    async def listens() -> bool:
        return await owner.fetchval(f"SELECT count(*) {listening}") == 1

    async with at_work(worker.run, worker.wakes.listen):
        await until(listens)
        await idle(worker)
        await keep(bank, user)  # and nobody is told
        await owner.execute(f"SELECT pg_terminate_backend(pid) {listening}")
        await ready(bank, user)
        await until(listens)


def address(server: EmbeddedPostgres) -> Path:
    return server.socket_dir / f".s.PGSQL.{server.port}"


@one_postgres
async def test_another_server_that_takes_the_place_of_the_database_wakes_the_worker_of_before(
    server: OpenAIServer, user: str, postgres: EmbeddedPostgres, database_url: str
):
    embedder = OpenAIEmbedder(Endpoint(base_url=server.base_url, model="fake", dimension=DIMENSION), PATIENT)
    keyring = Keyring(MASTER_KEY)
    async with (
        successor(database_url) as heir,
        service_database(heir.url(make_url(database_url).database or "")) as there,
        sleepy_database(address(postgres)) as front,
        service_database(front.url(database_url)) as database,
    ):
        bank = Bank(there, keyring)
        worker = Worker(database, embedder, keyring, pace=SELDOM)

        async def listens() -> bool:
            return worker.wakes.listens

        async with at_work(worker.run, worker.wakes.listen):
            await until(listens)
            await idle(worker)
            front.sleep()
            front.address = address(heir)
            await keep(bank, user)  # and nobody is told
            front.refuses = False
            await ready(bank, user)
            await until(listens)
            await keep(bank, f"{user}-2")
            await Wake(there, Rest(there)).notify()
            await ready(bank, f"{user}-2")
    await embedder.aclose()


@asynccontextmanager
async def successor(url: str) -> AsyncIterator[EmbeddedPostgres]:
    """Another server, with an empty bank under the name of the URL's database."""
    with migrated_home() as home, running(home) as heir:
        admin = await asyncpg.connect(dsn(heir.url("postgres")))
        await admin.execute(f"ALTER DATABASE casebank RENAME TO {make_url(url).database}")
        await admin.close()
        yield heir


@dataclass
class Breaking:
    """A pool whose first connection dies while a request is sent on it."""

    pool: asyncpg.Pool
    asked: int = 0

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[asyncpg.Connection]:
        self.asked += 1
        if self.asked == 1:
            raise asyncpg.InternalClientError("got result for unknown protocol state")
        async with self.pool.acquire() as connection:
            yield connection


async def test_a_listener_whose_connection_dies_while_it_asks_listens_again(bank: Bank):
    pool: Any = Breaking(bank.database.pool)
    database = replace(bank.database, pool=pool)
    wake = Wake(database, Rest(database))

    async def listens() -> bool:
        return wake.listens

    async with at_work(wake.listen):
        await until(listens)


async def test_a_worker_whose_batch_is_full_calls_others(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, database_url: str
):
    worker = worker_on(server, replace(SELDOM, batch=2))
    await asyncio.gather(*(keep(bank, user, f"task {number}") for number in range(2)))
    async with service_database(database_url) as elsewhere:
        there = Wake(elsewhere, Rest(elsewhere))

        async def called() -> bool:
            return there.called.is_set()

        async with at_work(there.listen):
            await until(called)  # it listens
            there.called.clear()
            async with at_work(worker.run):
                await until(called)


async def test_a_worker_that_finds_work_look_after_look_calls_others(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, database_url: str
):
    worker = worker_on(server, replace(SELDOM, batch=10_000))
    async with service_database(database_url) as elsewhere:
        there = Wake(elsewhere, Rest(elsewhere))

        async def called() -> bool:
            return there.called.is_set()

        async with at_work(there.listen):
            await until(called)  # it listens
            there.called.clear()
            async with at_work(worker.run):
                number = 0
                while not await called():
                    number += 1
                    await keep(bank, user, f"task {number}")
                    worker.wake()
