"""A service for the frameworks' tests, and what a bank holds after a hundred runs."""

import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pytest
from casebank_client import Casebank, Patience

from tests.processes import Service, all_worked, bank, free_port, migrated_home, until

AGENT = "db-operator"
RUNS = 100


class ServiceOfThisPython(Service):
    """The service, run by the interpreter that has the frameworks."""

    program = (sys.executable, "-P", "-m", "app.cli", "serve", "--port")


@dataclass(frozen=True)
class Banked:
    """A user of the service: a client for the framework's module, and what is in the bank."""

    service: Service
    user: str
    memory: Casebank

    def cases(self) -> list[dict[str, Any]]:
        """Every case in the order of its task, once the worker has seen all that was sent."""
        self.memory.outbox.close(within_s=120)
        with self.service.client(self.user) as client:
            all_worked(client)
            return sorted(bank(client), key=lambda case: case["task"])

    def whole(self, case: dict[str, Any]) -> dict[str, Any]:
        with self.service.client(self.user) as client:
            return client.get(f"/v1/cases/{case['case_id']}").json()

    def learn(self) -> None:
        """Keeps a run whose first call fails and whose second one does it right."""
        with self.memory.run(AGENT, TASK) as run:
            run.tool("sql", {"query": "old", "dialect": "mysql"}, RULE)
            run.tool("sql", {"query": "old", "dialect": "postgres"}, "ran it")
            run.success()
        self.settle()

    def settle(self) -> None:
        """Waits until what was sent can be found."""
        with self.service.client(self.user) as client:
            until(lambda: bank(client))
            all_worked(client)

    def assert_every_run_is_joined_to_its_retrieval(self, failed: set[str]) -> None:
        cases = self.cases()
        assert [case["task"] for case in cases] == [task_of(number) for number in range(RUNS)]
        assert len({case["retrieval_id"] for case in cases} - {None}) == RUNS
        assert {case["task"] for case in cases if case["outcome"] == "failure"} == failed
        assert {case["outcome"] for case in cases if case["task"] not in failed} == {"success"}


TASK = "move the table"
RULE = "Error: this server speaks one dialect of SQL and no other"
MARK = "Memory of earlier runs"
OF_NO_USE = "no advice for sql: "
"""What the log says of a failed call without advice."""


def task_of(number: int) -> str:
    return f"do job number {number:03}"


def fails(number: int) -> bool:
    return number % 10 == 7


FAILED = {task_of(number) for number in range(RUNS) if fails(number)}


@pytest.fixture(scope="session")
def framework_service() -> Iterator[Service]:
    if find_spec("agents") is None:
        pytest.skip("the frameworks are not installed: `make test-frameworks`")
    with migrated_home() as home, ServiceOfThisPython(home) as service:
        yield service


@pytest.fixture
def banked(framework_service: Service, request: pytest.FixtureRequest) -> Iterator[Banked]:
    user = f"{request.module.__name__.rpartition('.')[2]}-{abs(hash(request.node.name))}"
    token = framework_service.bearer(user)["Authorization"].removeprefix("Bearer ")
    with Casebank(framework_service.url, token, patience=Patience(begin_s=60)) as memory:
        yield Banked(framework_service, user, memory)


@pytest.fixture(params=["down", "refuses", "slow"])
def no_use(request: pytest.FixtureRequest) -> Iterator[Casebank]:
    """A client whose casebank is down, refuses the token, or never answers what it took."""
    with socket.create_server(("127.0.0.1", 0)) as slow:
        urls = {"down": f"http://127.0.0.1:{free_port()}", "slow": f"http://127.0.0.1:{slow.getsockname()[1]}"}
        url = urls.get(request.param) or request.getfixturevalue("framework_service").url
        with Casebank(url, "no token", patience=Patience(timeout_s=0.1, attempts=1, total_s=0.1)) as memory:
            yield memory


@pytest.fixture
def nobody() -> Iterator[Casebank]:
    """A client whose casebank is down."""
    with Casebank(f"http://127.0.0.1:{free_port()}", "no token", patience=Patience(timeout_s=2, attempts=1)) as memory:
        yield memory
