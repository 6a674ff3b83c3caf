"""A worker that is a process of its own: its numbers can be read, its fate is in its log, and a second one may run."""

import json
import os
from contextlib import suppress
from pathlib import Path

import httpx

from app.processes.own_service import free_port
from tests.processes import CERTIFICATES, migrated_home, started, surroundings, until


def test_a_worker_serves_its_metrics_and_tells_of_its_life_and_of_a_port_that_is_taken():
    port = free_port()
    with migrated_home() as home:
        logs = [home.parent / f"worker-{number}.log" for number in range(2)]
        workers = []
        for log in logs:
            with Path(os.devnull).open("wb") as nothing, log.open("wb") as file:
                words = ("worker", "--metrics-port", str(port))
                workers.append(started(words, surroundings(home), nothing, file))
        page = until(lambda: numbers(port))
        until(lambda: all("worker.started" in log.read_text() for log in logs))
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(timeout=60)
        events = [[json.loads(line)["event"] for line in log.read_text().splitlines()] for log in logs]
    assert "casebank_queue_oldest_seconds 0.0" in page
    assert sorted("metrics.served" in each for each in events) == [False, True]
    assert sorted("metrics.not_served" in each for each in events) == [False, True]


def numbers(port: int) -> str | None:
    """The page of metrics, once the worker has looked at the database."""
    with suppress(httpx.TransportError):
        page = httpx.get(f"http://127.0.0.1:{port}/metrics", verify=CERTIFICATES, timeout=60).text
        return page if "casebank_table_bytes{" in page else None
    return None
