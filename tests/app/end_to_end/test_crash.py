"""Whatever dies amid a stream of retains: what was acknowledged is in the bank, once."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import httpx
import psutil
import pytest

from app import postgres
from app.postgres.migrate import migrate
from app.postgres.pools import dsn
from tests.processes import (
    Service,
    alive,
    bank,
    migrated_home,
    new_home,
    pages,
    postgres_processes,
    postmaster_pid,
    retain,
    retrieve,
    until,
    worked,
)

CLIENTS = 4
RUNS = 25
"""How many each client retains."""
UNDER_WAY = 40
"""How many acknowledgements there are, of all the clients, before anything dies."""
TRIES = 1200
LEASE_S = "3"
"""A case that a killed worker held waits for its lease to end: not for the usual minute here."""


@dataclass
class Stream:
    """Backends that retain side by side, each repeating a run with its key until it is acknowledged."""

    service: Service
    user: str
    acknowledged: dict[str, str] = field(default_factory=dict)
    """Task to case id, as it was answered."""
    refusals: list[httpx.Response] = field(default_factory=list)
    broken: int = 0
    """How many requests had no answer."""
    _under_way: asyncio.Event = field(default_factory=asyncio.Event)

    async def run_through(self, disaster: Callable[[], None]) -> None:
        """Lets the disaster happen mid-stream, and the clients go on until all is acknowledged."""
        async with asyncio.TaskGroup() as clients:
            for name in range(CLIENTS):
                clients.create_task(self._client(name))
            await self._under_way.wait()
            await asyncio.to_thread(disaster)
        assert len(self.acknowledged) == CLIENTS * RUNS

    async def _client(self, name: int) -> None:
        bearer = self.service.bearer(self.user)
        async with httpx.AsyncClient(base_url=self.service.url, headers=bearer, timeout=60) as client:
            for number in range(RUNS):
                await self._until_acknowledged(client, f"client {name} does its run {number}")

    async def _until_acknowledged(self, client: httpx.AsyncClient, task: str) -> None:
        run = {"agent": "a", "task": task, "outcome": "success", "tool_traces": [{"tool": "sh", "output": task}]}
        for _ in range(TRIES):
            try:
                answer = await client.post("/v1/retain", json=run, headers={"Idempotency-Key": f"key of {task}"})
            except httpx.TransportError:
                self.broken += 1
            else:
                if answer.status_code == 202:
                    self.acknowledged[task] = answer.json()["case_id"]
                    if len(self.acknowledged) >= UNDER_WAY:
                        self._under_way.set()
                    return
                self.refusals.append(answer)
            await asyncio.sleep(0.05)
        raise AssertionError("nobody acknowledges it")


def assert_the_ledger_holds(stream: Stream) -> None:
    with stream.service.client(stream.user) as client:
        until(lambda: not bank(client, "pending"))
        cases = bank(client)
        inserted = [entry for entry in pages(client, "/v1/audit", "entries") if entry["action"] == "insert_case"]
        assert retrieve(client, "what does client 2 do")["mode"] == "hybrid"
    doubled = [task for task, count in Counter(case["task"] for case in cases).items() if count > 1]
    lost = stream.acknowledged.keys() - {case["task"] for case in cases}
    assert (lost, doubled) == (set(), [])
    assert {case["task"]: case["case_id"] for case in cases} == stream.acknowledged
    assert {case["status"] for case in cases} == {"ready"}
    assert Counter(entry["subject_id"] for entry in inserted) == Counter(stream.acknowledged.values())


def assert_come_back_later(answer: httpx.Response) -> None:
    """It is a problem document that says when to try again, for Postgres or for the client's own that wait for it."""
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1
    refused = (answer.status_code, answer.json()["type"].removeprefix("urn:casebank:problem:"))
    assert refused in {(503, "database-unavailable"), (429, "too-many-at-once")}, answer.text


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """One service for all the disasters, each with a user of its own."""
    with migrated_home() as home, Service(home, CASEBANK_WORKER_PACE=f"lease_s={LEASE_S}") as service:
        yield service


async def test_kill_9_of_the_service_loses_and_doubles_nothing(service: Service):
    stream = Stream(service, "killed-service")

    def disaster() -> None:
        service.kill()
        service.start()

    await stream.run_through(disaster)
    assert stream.broken
    assert_the_ledger_holds(stream)


async def test_kill_9_of_the_service_and_of_postgres_at_once_loses_and_doubles_nothing(service: Service):
    stream = Stream(service, "killed-both")

    def disaster() -> None:
        os.kill(postmaster_pid(service.home), signal.SIGKILL)
        service.kill()
        service.start()

    await stream.run_through(disaster)
    assert stream.broken
    assert_the_ledger_holds(stream)


async def test_the_service_brings_a_killed_postgres_back_and_loses_and_doubles_nothing(service: Service):
    stream = Stream(service, "killed-postgres")
    killed = postmaster_pid(service.home)
    await stream.run_through(lambda: os.kill(killed, signal.SIGKILL))
    assert not alive(killed)
    assert postmaster_pid(service.home) != killed
    assert not stream.broken
    assert stream.refusals
    for answer in stream.refusals:
        assert_come_back_later(answer)
    assert_the_ledger_holds(stream)


async def test_sigterm_amid_a_stream_ends_the_service_and_its_postgres_and_loses_nothing(service: Service):
    stream = Stream(service, "stopped-service")
    process, server = psutil.Process(service.process.pid), postmaster_pid(service.home)
    ended: list[int] = []

    def disaster() -> None:
        ended.append(service.stop())
        assert not alive(process.pid)
        assert not alive(server)
        assert not postgres_processes(service.home)
        service.start()

    await stream.run_through(disaster)
    assert ended[0] in {0, -signal.SIGTERM}
    assert stream.broken
    assert_the_ledger_holds(stream)


async def test_a_database_of_ones_own_may_go_and_come_back():
    with new_home() as own, migrated_home() as elsewhere:
        server = postgres.start(elsewhere)
        await migrate(server.url())
        address = dsn(server.url())
        with (
            Service(own, DATABASE_URL=address, CASEBANK_MASTER_KEY="5" * 64) as service,
            service.client("alice") as client,
        ):
            assert not (own / "postgres").exists()
            worked(client, retain(client, "feed the cat"))
            postgres.release(elsewhere)

            assert_come_back_later(client.post("/v1/retrieve", json={"agent": "a", "query": "cat"}))
            run = {"agent": "a", "task": "feed the dog", "outcome": "success"}
            assert_come_back_later(client.post("/v1/retain", json=run))
            assert_come_back_later(client.get("/v1/cases"))
            assert client.get("/healthz").status_code == 200
            assert client.get("/readyz").status_code == 503
            assert client.get("/metrics").status_code == 200

            assert postgres.start(elsewhere).url() == server.url()
            service.ready()
            worked(client, retain(client, "feed the bird"))
            found = retrieve(client, "feed the cat")
            assert found["mode"] == "hybrid"
            assert {case["task"] for case in found["cases"]} == {"feed the cat", "feed the bird"}
            told = [json.loads(line) for line in service.log.read_text().splitlines() if line.startswith("{")]
        outages = [line["event"] for line in told if line["event"].startswith("outage.")]
        assert outages == ["outage.began", "outage.ended"]
        refused = {(line["status"], line["type"]) for line in told if line["event"] == "request.refused"}
        assert (503, "database-unavailable") in refused
