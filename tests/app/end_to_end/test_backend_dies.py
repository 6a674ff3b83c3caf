"""A server that recovers, or has no connection left, is waited for: nobody starts it again, and nobody stops it."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

import asyncpg
import httpx
import psutil
import pytest

from app.settings import Settings
from tests.app.processes import Service, new_home, postgres_processes, postmaster_pid, retain, until, worked

BACK_WITHIN_S = 30.0
KILLS = 4


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with new_home() as home, Service(home, CASEBANK_WORKER_LEASE_S="3") as service:
        yield service


def backends(service: Service) -> list[psutil.Process]:
    """The server's processes that serve a client."""
    found = []
    for process in postgres_processes(service.home):
        with suppress(psutil.Error):
            if any("casebank" in word for word in process.cmdline()) and process.pid != postmaster_pid(service.home):
                found.append(process)
    return found


def answers(service: Service, client: httpx.Client) -> bool:
    with suppress(httpx.TransportError):
        body = {"agent": "a", "task": "is anybody there", "outcome": "success"}
        return client.post("/v1/retain", json=body).status_code == 202
    return False


def test_kill_9_of_one_backend_is_survived_by_the_server_and_the_service_is_back_soon(service: Service):
    postmaster = postmaster_pid(service.home)
    with service.client("killed-backend") as client:
        for number in range(KILLS):
            kept = retain(client, f"before kill {number}")
            os.kill(backends(service)[number % len(backends(service))].pid, signal.SIGKILL)
            killed_at = time.monotonic()
            until(lambda: answers(service, client))
            assert time.monotonic() - killed_at < BACK_WITHIN_S
            worked(client, kept)
    assert postmaster_pid(service.home) == postmaster


async def much_to_recover(service: Service) -> None:
    """Writes so much since the last checkpoint that recovering takes seconds."""
    address = Settings(home=service.home)
    folder, port = socket_of(service)
    connection = await asyncpg.connect(host=folder, port=port, user="postgres", database="casebank")
    await connection.execute("CHECKPOINT")
    await connection.execute("CREATE TABLE IF NOT EXISTS filler (n bigint, t text)")
    await connection.execute("INSERT INTO filler SELECT n, repeat('x', 200) FROM generate_series(1, 2000000) AS n")
    await connection.close()


def socket_of(service: Service) -> tuple[str, int]:
    lines = (service.home / "postgres" / "postmaster.pid").read_text().splitlines()
    return lines[4], int(lines[3])


def test_long_recovery(service: Service):
    postmaster = postmaster_pid(service.home)
    with service.client("killed-backend2") as client:
        asyncio.run(much_to_recover(service))
        os.kill(backends(service)[0].pid, signal.SIGKILL)
        killed_at = time.monotonic()
        until(lambda: answers(service, client))
        print("BACK", time.monotonic() - killed_at)
    assert postmaster_pid(service.home) == postmaster
