"""One embedded Postgres for the whole run; a fresh migrated database for each module that asks."""

import asyncio
import gc
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import hypothesis
import pytest
import structlog
import uvloop
from sqlalchemy.engine import make_url

from app.postgres import EmbeddedPostgres, release, start
from app.postgres.migrate import migrate
from app.postgres.pools import dsn
from retrieval.telemetry import log
from tests.cluster import CITUS_URL, OF_ONE_POSTGRES, Cluster, cluster_of, one_postgres
from tests.paths import ROOT, memory

pytest_plugins = ["tests.service"]

# The same examples in every run: chance makes none red. `pytest --hypothesis-profile thorough` looks for more.
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=500)
hypothesis.settings.load_profile("steady")

SLOW = (
    "tests/deploy",
    "tests/app/backup",
    "tests/app/end_to_end",
    "tests/examples",
    "tests/app/erasure",
    "tests/app/training",
    "tests/app/routes/test_policy.py",
    "tests/bench",
)
"""Folders and files whose tests come first: a slow file at the end would leave the other processors idle."""

Server = EmbeddedPostgres | Cluster
TEMPLATES: dict[tuple[Server, str], str] = {}
"""The migrated database that others are copied from, by server and setting of pgvector; nobody uses it itself."""

WAITING = """
SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database WHERE datname = current_database() AND NOT granted
"""
"""Counts the locks of the database that somebody waits for."""

if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    # Each process that a test starts would compile all of casebank again, two seconds of it. What one compiled
    # is kept for the others, and not beside the sources, where it is not wanted.
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".pytest_cache" / "bytecode"))


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Adds a worker to one for each processor: a worker waits a quarter of its time, for pauses and other processes."""
    return 1 + (yield)


asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # the loop of the service and its commands

gc.disable()  # while all is imported and collected, which stays


def pytest_collection_finish() -> None:
    """Leaves what was imported and collected out of every search for garbage from now on."""
    gc.freeze()
    gc.set_threshold(20_000)  # by default searches take 3 % of the time
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts the slow files to the front; the order within a file stays. Marks folders that are about one Postgres."""
    names = [str(ROOT / name) for name in SLOW]
    items.sort(
        key=lambda item: next((n for n, name in enumerate(names) if str(item.path).startswith(name)), len(names))
    )
    for item in items:
        if item.path.is_relative_to(ROOT) and str(item.path.relative_to(ROOT)).startswith(OF_ONE_POSTGRES):
            item.add_marker(one_postgres)


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Puts back what a command that a test runs in this process does to the logs."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    if structlog.is_configured():
        structlog.reset_defaults()
        vars(log).pop("bind", None)  # which it remembers with the configuration of its first use
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    with tempfile.TemporaryDirectory(prefix="casebank-tests-", dir=memory(), ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "postgres"
        yield start(home)
        release(home)


if CITUS_URL is not None:

    @pytest.fixture(scope="session")
    async def postgres() -> AsyncIterator[Cluster]:
        """The cluster in place of the embedded Postgres."""
        os.environ.pop("CASEBANK_TEST_CITUS", None)  # casebank says of it that it is no setting
        cluster = await cluster_of(CITUS_URL)
        yield cluster
        await cluster.drop(*TEMPLATES.values())

    @pytest.fixture(scope="module", autouse=True)
    async def dropped(postgres: Cluster) -> AsyncIterator[None]:
        """Drops a module's databases: processes of Citus are connected to each."""
        yield
        await postgres.drop(*postgres.made)
        postgres.made.clear()


async def new_database(server: Server, *, pgvector: str = "auto") -> str:
    """Creates a migrated database and returns its URL as the owner; only the first one of its kind is migrated."""
    template = TEMPLATES.get((server, pgvector))
    if template is None:
        if isinstance(server, Cluster):
            template = await server.new(pgvector=pgvector)
        else:
            template = await _created(server, "template1")
            await migrate(server.url(template), pgvector=pgvector)
        TEMPLATES[server, pgvector] = template
    return server.url(await _created(server, template))


async def copy_of(server: Server, url: str) -> str:
    """Copies a database, to which nobody may be connected, and returns the copy's URL as the owner."""
    return server.url(await _created(server, str(make_url(url).database)))


async def _created(server: Server, template: str) -> str:
    """Copies the database, to which nobody may be connected, and returns the copy's name."""
    if isinstance(server, Cluster):
        return await server.copy(template)
    name = f"t{uuid4().hex}"
    admin = await asyncpg.connect(dsn(server.url("postgres")))
    try:
        await admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    finally:
        await admin.close()
    return name


@pytest.fixture(scope="module")
async def database_url(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """URL of an empty bank."""
    return await new_database(postgres)
