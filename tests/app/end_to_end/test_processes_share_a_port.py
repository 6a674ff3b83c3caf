"""`casebank serve --processes`: several processes serve one port, with limits, counts and a queue in common."""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.processes.own_module import OWN_MODULE
from tests.processes import Service, alive, get, migrated_home, postgres_processes, retain, retrieve, until, worked

FEW = 12
"""Reads that a user may send at once."""
LIMITS = {"CASEBANK_LIMITS": f"user_reads={FEW},burst_s=60", "CASEBANK_TIMEOUTS_S": "turn=0.001"}
REQUESTS = "casebank_requests_total"


class Processes(Service):
    """Two processes on one port."""

    program = (*OWN_MODULE, "app.cli", "serve", "--processes", "2", "--port")

    def serving(self) -> set[int]:
        """Returns the processes that accept connections, by number."""
        found = set()
        for process in psutil.Process(self.process.pid).children():
            with suppress(psutil.Error):  # it ends
                if answers(process) and any(each.status == "LISTEN" for each in process.net_connections("tcp")):
                    found.add(process.pid)
        return found


def answers(process: psutil.Process) -> bool:
    return any("spawn_main" in part for part in process.cmdline())


def sent(service: Processes, user: str, path: str) -> httpx.Response:
    """Returns the answer to a request on a connection of its own, which any of the processes may take."""
    with service.client(user) as client:
        return client.get(path)


@pytest.fixture(scope="module")
def service() -> Iterator[Processes]:
    with migrated_home() as home, Processes(home, **LIMITS) as service:
        until(lambda: len(service.serving()) == 2)
        yield service


def test_what_one_connection_retains_another_retrieves(service: Processes):
    for number in range(4):
        with service.client(f"user-{number}") as client:
            case_id = retain(client, f"rename column number {number}")
            worked(client, case_id)
        with service.client(f"user-{number}") as client:
            assert [each["case_id"] for each in retrieve(client, "rename a column")["cases"]] == [case_id]


def test_a_users_limit_counts_the_requests_to_all_processes(service: Processes):
    through = Counter(sent(service, "hasty", "/v1/cases").status_code for _ in range(4 * FEW))
    assert through.keys() == {200, 429}
    assert FEW <= through[200] < 2 * FEW  # each process of its own would have let twice as many through


def test_the_metrics_are_those_of_all_processes_together(service: Processes):
    def counted() -> float:
        text = get(f"{service.url}/metrics").text
        samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
        return sum(each.value for each in samples if each.name == REQUESTS and each.labels.get("route") == "/v1/facts")

    before = counted()
    for number in range(20):
        assert sent(service, f"reader-{number}", "/v1/facts?agent=a").status_code == 200
    assert [counted() - before for _ in range(4)] == [20] * 4


def test_a_process_that_dies_is_replaced_while_the_other_serves(service: Processes):
    victim, other = sorted(service.serving())
    psutil.Process(victim).kill()
    for number in range(8):
        with service.client(f"survivor-{number}") as client:
            until(lambda client=client: answered(client))
    until(lambda: len(service.serving()) == 2)
    assert other in service.serving()
    assert victim not in service.serving()


def answered(client: httpx.Client) -> bool:
    """Returns whether the service answers; a connection that the dead process had taken breaks off."""
    try:
        return client.get("/v1/cases").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_all_processes_and_the_database_end_with_the_first(service: Processes, number: signal.Signals):
    if service.process is None:
        service.start()
        service.ready()
    until(lambda: len(service.serving()) == 2)
    others = [each.pid for each in psutil.Process(service.process.pid).children(recursive=True)]
    service.end(number)
    until(lambda: not any(map(alive, others)))
    until(lambda: not postgres_processes(service.home))
