"""A service that nobody calls closes its connections and sends nothing; the next call finds it as it was."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from prometheus_client import REGISTRY
from sqlalchemy.engine import make_url

from app.main import create_app
from app.postgres import EmbeddedPostgres
from app.postgres.pools import dsn
from app.settings import Settings
from tests.cluster import Cluster
from tests.conftest import Server, new_database
from tests.fakes.sleepy_database import Address, SleepyDatabase, sleepy_database
from tests.service import Service

HOUR_S = 3600
IDLE_S = 300


class MovedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock a test may put forward."""

    moved_s = 0.0

    def time(self) -> float:
        return super().time() + self.moved_s


@pytest.fixture
def moved() -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs a test on a loop of its own."""

    def run(test: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=MovedLoop) as runner:
            runner.run(test)

    return run


async def passes(seconds: float, service: Service, step_s: float = 1.0) -> None:
    """Puts the clock forward step by step; what is due at a step has its statements answered before the next.

    The time that the machine takes for the steps counts, or a slow one would pass a limit that the test keeps within.
    """
    loop = asyncio.get_running_loop()
    assert isinstance(loop, MovedLoop)
    ends_at = loop.time() + seconds
    while loop.time() < ends_at:
        loop.moved_s += min(step_s, ends_at - loop.time())
        await asyncio.sleep(0)
        await real(lambda: not in_use(service))


def in_use(service: Service) -> int:
    """Connections with a statement under way."""
    database = service.runtime.database
    engine = database.engine.pool.checkedout()  # type: ignore[attr-defined]
    return engine + database.pool.get_size() - database.pool.get_idle_size() - service.runtime.worker.wakes.listens


async def real(condition: Callable[[], bool | Awaitable[bool]], within_s: float = 60) -> None:
    """Waits by the machine's own clock until the condition holds."""
    ends_at = time.monotonic() + within_s
    while True:
        await asyncio.to_thread(time.sleep, 0.001)
        held = condition()
        if held if isinstance(held, bool) else await held:
            return
        assert time.monotonic() < ends_at


def address_of(server: Server) -> Address:
    """Where the Postgres, or the coordinator of the cluster, takes connections."""
    if isinstance(server, Cluster):
        coordinator = server.nodes[0]
        return coordinator.host or "localhost", coordinator.port or 5432
    return server.socket_dir / f".s.PGSQL.{server.port}"


@asynccontextmanager
async def served(front: SleepyDatabase, url: str, home: Path, **more: Any) -> AsyncIterator[Service]:
    """A service on the database behind the front."""
    settings = Settings(
        home=home,
        database_url=front.url(url),
        jwt_secret="a secret of at least thirty-two bytes",
        master_key="5" * 64,
        idle_s=IDLE_S,
        explore=False,
        **more,
    )
    app = create_app(settings)
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        yield Service(app, settings, clients)


@asynccontextmanager
async def resting(postgres: Server, home: Path) -> AsyncIterator[tuple[SleepyDatabase, Service]]:
    """A service that has served, worked and come to rest, and its database."""
    url = await new_database(postgres)
    async with sleepy_database(address_of(postgres)) as front, served(front, url, home) as service:
        alice = await service.user("alice")
        await alice.retain("water the roses of the garden")
        await alice.settle()
        await passes(IDLE_S + 90, service)
        await real(lambda: service.runtime.rest.at_rest and not front.open)
        yield front, service


def cold() -> float:
    return REGISTRY.get_sample_value("casebank_stage_seconds_count", {"stage": "cold"}) or 0.0


def test_an_hour_in_which_nothing_happens_sends_no_statement_and_holds_no_connection(
    moved: Any, postgres: Server, tmp_path: Path
):
    async def test() -> None:
        async with resting(postgres, tmp_path) as (front, service):
            received, accepted = front.received, front.accepted
            await passes(HOUR_S, service, step_s=5.0)
            assert (front.received, front.accepted, front.open) == (received, accepted, 0)

    moved(test())


def test_probes_and_scrapes_of_a_resting_service_are_answered_without_its_database(
    moved: Any, postgres: Server, tmp_path: Path
):
    async def test() -> None:
        async with resting(postgres, tmp_path) as (front, service):
            accepted, anybody = front.accepted, await service.http(None)
            assert (await anybody.get("/readyz")).json() == {"status": "ok", "at_rest": True}
            assert "casebank_queue_cases" in (await anybody.get("/metrics")).text
            assert (await anybody.get("/v1/cases")).status_code == 401
            assert (front.accepted, service.runtime.rest.at_rest) == (accepted, True)

    moved(test())


def test_the_first_request_after_a_rest_waits_for_a_database_that_wakes_slowly(
    moved: Any, postgres: Server, tmp_path: Path
):
    async def test() -> None:
        async with resting(postgres, tmp_path) as (front, service):
            alice, before = await service.user("alice"), cold()
            front.wakes_in_s = 0.5
            found = await alice.retrieve("water the roses")
            assert [slot["task"] for slot in found["cases"]] == ["water the roses of the garden"]
            assert cold() == before + 1
            await alice.retrieve("water the roses")
            assert cold() == before + 1

    moved(test())


def test_a_request_waits_out_twenty_seconds_of_refused_connections(moved: Any, postgres: Server, tmp_path: Path):
    async def test() -> None:
        async with resting(postgres, tmp_path) as (front, service):
            front.sleep()
            alice = await service.user("alice")
            asking = asyncio.create_task(alice.retrieve("water the roses"))
            await passes(20, service)
            assert not asking.done()
            front.refuses = False
            await passes(2, service)
            assert (await asking)["cases"]

    moved(test())


def test_a_database_that_does_not_wake_in_thirty_seconds_gets_a_503_and_the_next_request_waits_again(
    moved: Any, postgres: Server, tmp_path: Path
):
    async def test() -> None:
        async with resting(postgres, tmp_path) as (front, service):
            front.sleep()
            alice = await service.user("alice")
            asking = asyncio.create_task(alice.http.get("/v1/cases"))
            await passes(32, service)
            assert (await asking).status_code == 503
            front.refuses = False
            assert (await alice.http.get("/v1/cases")).status_code == 200

    moved(test())


def test_a_request_to_a_database_that_sleeps_before_its_service_gets_a_503_and_a_200_once_it_is_awake(
    moved: Any, postgres: Server, tmp_path: Path
):
    async def test() -> None:
        url = await new_database(postgres)
        async with sleepy_database(address_of(postgres)) as front, served(front, url, tmp_path) as service:
            alice = await service.user("alice")
            case_id = await alice.retain("water the roses of the garden")
            await alice.settle()
            front.sleep()
            for _ in range(2):
                assert (await alice.http.get(f"/v1/cases/{case_id}")).status_code == 503
            assert not service.runtime.rest.at_rest
            front.refuses = False
            assert (await alice.http.get(f"/v1/cases/{case_id}")).status_code == 200
            assert (await alice.retrieve("water the roses"))["cases"]

    moved(test())


def test_of_two_replicas_one_sleeps_and_the_other_works_alone(moved: Any, postgres: Server, tmp_path: Path):
    async def test() -> None:
        async with (
            resting(postgres, tmp_path) as (front, sleeper),
            sleepy_database(front.address) as other_front,
            served(other_front, sleeper.settings.database_url or "", tmp_path) as other,
        ):
            accepted, bob = front.accepted, await other.user("bob")
            case_id = await bob.retain("prune the apple tree")
            await bob.settle()
            assert (front.accepted, sleeper.runtime.rest.at_rest) == (accepted, True)
            same = await sleeper.user("bob")
            assert (await same.case(case_id))["status"] == "ready"

    moved(test())


def test_work_that_a_dead_replica_left_is_done_when_the_sleeping_one_wakes(
    moved: Any, postgres: Server, tmp_path: Path
):
    async def test() -> None:
        async with resting(postgres, tmp_path) as (front, sleeper):
            url = sleeper.settings.database_url or ""
            async with sleepy_database(front.address) as other_front:
                async with served(other_front, url, tmp_path, worker_in_service=False) as other:
                    case_id = await (await other.user("bob")).retain("prune the apple tree")
                assert sleeper.runtime.rest.at_rest
                bob = await sleeper.user("bob")
                await bob.retrieve("apple tree")
                await bob.settle()
                assert (await bob.case(case_id))["status"] == "ready"

    moved(test())


def test_a_due_job_wakes_the_database_and_lets_it_sleep_again(moved: Any, postgres: Server, tmp_path: Path):
    async def test() -> None:
        async with resting(postgres, tmp_path) as (front, service):
            received = front.received
            await passes(2 * HOUR_S, service, step_s=5.0)  # runs without a step for so long are ended
            await real(lambda: not front.open)
            assert front.received > received
            assert service.runtime.rest.at_rest
            received = front.received
            await passes(3 * HOUR_S, service, step_s=5.0)
            assert front.received == received  # nothing was used since: upkeep comes once a day

    moved(test())


def test_a_worker_that_finds_nothing_looks_less_and_less_often(moved: Any, postgres: Server, tmp_path: Path):
    async def test() -> None:
        url = await new_database(postgres)
        async with sleepy_database(address_of(postgres)) as front, served(front, url, tmp_path) as service:
            looks = list[float | None]()
            for _second in range(IDLE_S - 20):  # before it rests
                await passes(1, service)
                if service.runtime.worker.looked_at not in looks:
                    looks.append(service.runtime.worker.looked_at)
            assert not service.runtime.rest.at_rest
            assert 4 <= len(looks) <= 14  # after .2, .4, .8, … 51.2 s, and then once a minute

    moved(test())


def test_the_nodes_have_a_session_of_a_service_that_is_used_and_none_of_one_at_rest(
    moved: Any, postgres: Server, tmp_path: Path
):
    async def test() -> None:
        async with resting(postgres, tmp_path) as (front, service):
            nodes = nodes_of(postgres, service.settings.database_url or "")

            async def none() -> bool:
                return not any([await sessions_of(node) for node in nodes])

            await real(none)  # a server takes a moment to end a session
            alice = await service.user("alice")
            await alice.retrieve("water the roses")
            assert await sessions_of(nodes[0])
            assert isinstance(postgres, EmbeddedPostgres) or any([await sessions_of(node) for node in nodes[1:]])
            await passes(IDLE_S + 90, service)
            await real(lambda: service.runtime.rest.at_rest and not front.open)
            await real(none)

    moved(test())


def nodes_of(server: Server, url: str) -> list[str]:
    """URLs of the database behind the front, on each node of a cluster, the coordinator first."""
    if isinstance(server, Cluster):
        database = make_url(url).database
        return [node.set(database=database).render_as_string(hide_password=False) for node in server.nodes]
    return [server.url(make_url(url).database or "")]


async def sessions_of(url: str) -> int:
    """Sessions of services at the database: as they name themselves, and as nodes of a cluster log in for them."""
    connection = await asyncpg.connect(dsn(url))
    try:
        ours = "(application_name = 'casebank' OR usename LIKE 'casebank%')"
        asked = f"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {ours}"  # noqa: S608
        return await connection.fetchval(asked)
    finally:
        await connection.close()


async def test_a_service_that_never_rests_keeps_its_connections(database_url: str, tmp_path: Path):
    settings = Settings(
        home=tmp_path,
        database_url=database_url,
        jwt_secret=os.urandom(32).hex(),
        master_key=os.urandom(32).hex(),
        idle_s=0,
    )
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        assert not app.state.runtime.rest.at_rest
        assert await sessions_of(database_url) > 0
