"""A worker that is a process of its own: its numbers can be read, its fate is in its log, and a second one may run."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from app.processes.own_service import free_port
from tests.app.end_to_end.test_watch_docs import DOCUMENTED, exported
from tests.paths import ROOT
from tests.processes import CASEBANK, CERTIFICATES, migrated_home, surroundings, until

OF_THE_SERVICE = {
    "casebank_memory_tool_calls_total",
    "casebank_procedure_reviews_total",
    "casebank_refusals_total",
    "casebank_requests_total",
}
"""What a worker alone never counts: it answers no requests, and procedures are reviewed by one."""


@pytest.fixture(scope="module")
def workers() -> Iterator[tuple[str, list[list[str]]]]:
    """The page of metrics of two workers that were given one port, and the events that each logged to its end."""
    port = free_port()
    with migrated_home() as home:
        logs = [home.parent / f"worker-{number}.log" for number in range(2)]
        workers = []
        for log in logs:
            with log.open("wb") as file:
                # no forks, which would have the metrics of the service as well
                command = (CASEBANK, "worker", "--metrics-port", str(port))
                around = surroundings(home)
                process = subprocess.Popen(command, env=around, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=file)
                workers.append(process)
        try:
            page = until(lambda: numbers(port))
            until(lambda: all("worker.started" in log.read_text() for log in logs))
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(timeout=60)
        yield page, [[json.loads(line)["event"] for line in log.read_text().splitlines()] for log in logs]


def test_a_worker_serves_its_metrics_and_tells_of_its_life_and_of_a_port_that_is_taken(
    workers: tuple[str, list[list[str]]],
):
    page, events = workers
    assert "casebank_queue_oldest_seconds 0.0" in page
    assert sorted("metrics.served" in each for each in events) == [False, True]
    assert sorted("metrics.not_served" in each for each in events) == [False, True]


def test_each_metric_of_a_worker_is_on_the_page(workers: tuple[str, list[list[str]]]):
    page, _ = workers
    assert exported(page).keys() == DOCUMENTED.keys() - OF_THE_SERVICE


def numbers(port: int) -> str | None:
    """The page of metrics, once the worker has looked at the database."""
    with suppress(httpx.TransportError):
        page = httpx.get(f"http://127.0.0.1:{port}/metrics", verify=CERTIFICATES, timeout=60).text
        return page if "casebank_table_bytes{" in page else None
    return None
