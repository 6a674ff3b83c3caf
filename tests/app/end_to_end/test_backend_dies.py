"""A server that recovers, or has no connection left, is waited for: nobody starts it again, and nobody stops it."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import asyncpg
import httpx
import psutil
import pytest

from app import postgres
from app.jobs.schedule import REVIVE_EVERY_S
from tests.processes import Service, migrated_home, postgres_processes, postmaster_pid, until, worked

KILLS = 4


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with migrated_home() as home, Service(home, CASEBANK_WORKER_PACE="lease_s=3") as service:
        yield service


def backends(service: Service) -> list[psutil.Process]:
    """The server's processes that serve a client."""
    found = []
    for process in postgres_processes(service.home):
        with suppress(psutil.Error):
            if any("casebank" in word for word in process.cmdline()) and process.pid != postmaster_pid(service.home):
                found.append(process)
    return found


def kill_backend(service: Service, number: int) -> None:
    """Waits until the service has backends, and kills the one of this number, modulo how many there are."""

    def killed() -> bool:
        with suppress(psutil.NoSuchProcess):
            if here := backends(service):
                here[number % len(here)].kill()
                return True
        return False

    until(killed)


def retained(client: httpx.Client, task: str) -> str | None:
    """Returns the case's id, or None where the service does not take the run just now."""
    with suppress(httpx.TransportError):
        answer = client.post("/v1/retain", json={"agent": "a", "task": task, "outcome": "success"})
        return answer.json()["case_id"] if answer.status_code == 202 else None
    return None


def answers(client: httpx.Client) -> bool:
    return retained(client, "is anybody there") is not None


def test_kill_9_of_one_backend_is_survived_by_the_server_and_the_service_is_back_soon(service: Service):
    postmaster = postmaster_pid(service.home)
    with service.client("killed-backend") as client:
        for number in range(KILLS):
            kept = until(lambda: retained(client, f"before kill {number}"))  # noqa: B023 - called at once
            kill_backend(service, number)
            until(lambda: answers(client))
            worked(client, kept)
    assert postmaster_pid(service.home) == postmaster


def socket_of(service: Service) -> tuple[str, int]:
    lines = (service.home / "postgres" / "postmaster.pid").read_text().splitlines()
    return lines[4], int(lines[3])


async def connected(service: Service) -> asyncpg.Connection:
    folder, port = socket_of(service)
    return await asyncpg.connect(host=folder, port=port, user="postgres", database="casebank")


async def much_to_recover(service: Service) -> None:
    """Writes so much since the last checkpoint that to recover takes seconds, over several looks of the service."""
    connection = await connected(service)
    await connection.execute("CHECKPOINT")
    await connection.execute("CREATE TABLE IF NOT EXISTS filler (n bigint, t text)")
    await connection.execute("INSERT INTO filler SELECT n, repeat('x', 200) FROM generate_series(1, 1500000) AS n")
    await connection.close()


async def test_a_server_that_recovers_for_seconds_is_neither_stopped_nor_started(service: Service):
    postmaster = postmaster_pid(service.home)
    with service.client("long-recovery") as client:
        kept = until(lambda: retained(client, "before the long recovery"))
        await much_to_recover(service)
        kill_backend(service, 0)
        await asyncio.to_thread(until, lambda: answers(client))
        worked(client, kept)
    assert postmaster_pid(service.home) == postmaster
    assert "shutdown request" not in (service.home / "postgres.log").read_text()


async def test_while_every_slot_is_taken_a_start_waits_and_the_service_says_come_back_later(service: Service):
    postmaster = postmaster_pid(service.home)
    taken = []
    with service.client("no-slots") as client:
        with suppress(asyncpg.TooManyConnectionsError):
            while True:
                taken.append(await connected(service))
        waiting = asyncio.create_task(asyncio.to_thread(postgres.start, service.home))
        await asyncio.sleep(2 * REVIVE_EVERY_S)
        assert not waiting.done()
        assert postmaster_pid(service.home) == postmaster
        for connection in taken:
            await connection.close()
        assert (await waiting).pid == postmaster
        await asyncio.to_thread(postgres.release, service.home)
        await asyncio.to_thread(until, lambda: answers(client))
    assert postmaster_pid(service.home) == postmaster
