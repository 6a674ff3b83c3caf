"""Any number of processes may serve and work one home: they share its Postgres, its secrets and its queue."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.processes import (
    ANSWER_S,
    CERTIFICATES,
    Service,
    alive,
    bank,
    casebank,
    get,
    migrated_home,
    postgres_processes,
    postmaster_pid,
    retain,
    retrieve,
    started,
    surroundings,
    until,
    worked,
)

BATCH = 40
"""How many runs are retained before the next look at who worked them."""

AT_ONCE = 4
"""How many requests of a user one service takes at once: all of them may meet at one."""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with migrated_home() as home:
        yield home


@pytest.fixture(scope="module")
def pair(home: Path) -> Iterator[tuple[Service, Service]]:
    """Two services that make the home together: both start at once where nothing has been yet."""
    first, second = Service(home), Service(home)
    first.start()
    second.start()
    first.ready()
    second.ready()
    yield first, second
    for service in (first, second):
        if service.process is not None:
            service.stop()


@contextmanager
def another_worker(home: Path) -> Iterator[None]:
    """Runs `casebank worker` beside what is inside; the home's Postgres must be up."""
    log = home.parent / "worker.log"
    with log.open("ab") as file:
        process = started(("worker",), surroundings(home), file, file)
    try:
        yield
        assert process.poll() is None, log.read_text()
    finally:
        process.terminate()
        process.wait(timeout=60)


def test_what_one_service_retains_the_other_retrieves(pair: tuple[Service, Service]):
    for number, (here, there) in enumerate([pair, pair[::-1]]):
        with here.client("sharing") as mine, there.client("sharing") as other:
            case_id = retain(mine, f"rename column number {number}")
            worked(other, case_id)
            assert case_id in [case["case_id"] for case in retrieve(other, f"column number {number}")["cases"]]


def test_a_token_from_the_command_line_is_accepted_by_both(pair: tuple[Service, Service], home: Path):
    token = casebank(home, "token", "--user", "alice").stdout.strip()
    for service in pair:
        for bearer, status in ((token, 200), (f"{token[:-4]}AAAA", 401)):
            headers = {"Authorization": f"Bearer {bearer}"}
            assert get(f"{service.url}/v1/cases", headers=headers).status_code == status


def test_the_same_key_at_both_services_at_once_is_one_case(pair: tuple[Service, Service]):
    run = {"agent": "a", "task": "say it once", "outcome": "success"}

    def say(service: Service) -> str:
        headers = {**service.bearer("insistent"), "Idempotency-Key": "once"}
        url = f"{service.url}/v1/retain"
        answer = httpx.post(url, json=run, headers=headers, timeout=ANSWER_S, verify=CERTIFICATES)
        assert answer.status_code == 202, answer.text
        return answer.json()["case_id"]

    with ThreadPoolExecutor(AT_ONCE) as threads:
        assert len(set(threads.map(say, pair * 8))) == 1


def test_three_workers_work_each_case_exactly_once(pair: tuple[Service, Service], home: Path):
    before = sum(worked_by(service) for service in pair)
    kept: set[str] = set()

    def keep(number: int) -> str:
        with pair[number % 2].client("busy") as client:
            return retain(client, f"do job number {number}")

    with another_worker(home), pair[0].client("busy") as client, ThreadPoolExecutor(AT_ONCE) as threads:

        def worked_by_the_third() -> float:
            kept.update(threads.map(keep, range(len(kept), len(kept) + BATCH)))
            until(lambda: not bank(client, "pending"))
            return before + len(kept) - sum(worked_by(service) for service in pair)

        assert until(worked_by_the_third) > 0
        cases = bank(client)
    assert Counter(case["case_id"] for case in cases) == Counter(kept)
    assert {(case["status"], case["attempts"], case["last_error"]) for case in cases} == {("ready", 1, None)}


def worked_by(service: Service) -> float:
    """Returns how many cases the service's own worker took off the queue, however that ended."""
    families = text_string_to_metric_families(get(f"{service.url}/metrics").text)
    samples = [sample for family in families for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name == "casebank_worker_cases_total")


def test_a_service_that_stops_leaves_the_other_working_and_the_last_one_takes_postgres_along(
    pair: tuple[Service, Service], home: Path
):
    first, second = pair
    server = postmaster_pid(home)
    first.stop()
    with second.client("loyal") as client:
        worked(client, retain(client, "go on alone"))
        assert retrieve(client, "go on alone")["mode"] == "hybrid"
    assert postmaster_pid(home) == server
    second.stop()
    assert not alive(server)
    assert not postgres_processes(home)


def test_a_worker_alone_works_what_a_service_without_one_retains(home: Path):
    with Service(home, CASEBANK_WORKER_IN_SERVICE="false") as service, service.client("split") as client:
        case_id = retain(client, "wait for a worker")
        assert retrieve(client, "wait for a worker")["mode"] == "empty"
        assert client.get(f"/v1/cases/{case_id}").json()["status"] == "pending"
        with another_worker(home):
            worked(client, case_id)
        assert worked_by(service) == 0
