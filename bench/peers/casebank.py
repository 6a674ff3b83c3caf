"""casebank as a memory of the benchmark: in this process, and over HTTP."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import httpx
import psutil

from app.postgres.pools import service_database
from app.processes.own_service import own_service
from app.providers.wordllama import WordLlamaEmbedder
from app.settings.numbers import Limits
from bench.bank import empty, settings_of
from bench.peers.memory import FIRST, USERS, Memory, PastRun
from bench.real import AGENT
from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.queue.worker import Worker
from writer.retain.retain import retain

LOOK_S = 0.05
"""Seconds between two looks for pending cases."""
RESTING_PERCENT = 5.0
"""Percent of a processor above which a service still works on what was retained."""
MASTER_KEY = bytes(range(32))
"""The same each time, so that a memory can be opened again."""
UNKNOWN = -1
"""Number of a run that was kept before the memory was opened."""
PENDING = "SELECT EXISTS (SELECT FROM cases WHERE status = 'pending')"
Result = TypeVar("Result")
Wait = Callable[[Coroutine[Any, Any, Result]], Result]


@asynccontextmanager
async def in_process(home: Path) -> AsyncIterator[Memory]:
    """Yields a casebank in this process, whose worker begins when all runs are retained."""
    keyring, embedder, numbers = Keyring(MASTER_KEY, seals_words=True), WordLlamaEmbedder(), dict[UUID, int]()
    url, wait = await empty(home, "peers_in_process"), _from_threads()

    def add(run: PastRun) -> None:
        author = Author(run.user, run.user, datetime.now(UTC))
        numbers[wait(retain(database, keyring, run.retained, author)).case_id] = run.number

    def search(user: str, text: str) -> list[int]:
        question = Question(CaseSearch(AGENT, text), k=FIRST)
        choices = wait(reader.retrieve(user, datetime.now(UTC), question)).choices
        return [numbers.get(each.row.id, UNKNOWN) for each in choices]

    def settle() -> None:
        while wait(owner.fetchval(PENDING)):
            wait(worker.run_once())

    def rest() -> None:
        while wait(worker.run_once()):
            pass

    async with _owner(url) as owner, service_database(url) as database:
        reader = Reader(database, embedder, explore=True, seals=keyring)
        worker = Worker(database, embedder, keyring)
        yield Memory(add, search, settle, rest)


@asynccontextmanager
async def over_http(home: Path) -> AsyncIterator[Memory]:
    """Yields a casebank that a service of its own serves, with its worker, without limits of requests a minute."""
    url, wait, numbers = await empty(home, "peers_http"), _from_threads(), dict[UUID, int]()
    unlimited = {name: 0 for name in Limits.model_fields if name.endswith(("_reads", "_writes"))}
    settings = settings_of(home, url, MASTER_KEY).model_copy(update={"limits": Limits(**unlimited)})

    def post(user: str, path: str, body: dict[str, Any]) -> Any:
        return client.post(path, json=body, headers=headers[user]).raise_for_status().json()

    def add(run: PastRun) -> None:
        kept = post(run.user, "/v1/retain", run.retained.model_dump(mode="json", exclude_defaults=True))
        numbers[UUID(kept["case_id"])] = run.number

    def search(user: str, text: str) -> list[int]:
        found = post(user, "/v1/retrieve", {"agent": AGENT, "query": text, "k": FIRST})
        return [numbers.get(UUID(case["case_id"]), UNKNOWN) for case in found["cases"]]

    def settle() -> None:
        while wait(owner.fetchval(PENDING)):
            time.sleep(LOOK_S)

    def rest() -> None:
        while process.cpu_percent(interval=1) > RESTING_PERCENT:
            pass

    began = time.time()
    async with _owner(url) as owner, own_service(settings) as service:
        process = psutil.Process(service.pid)
        headers = {user: service.headers(user) for user in USERS}
        with httpx.Client(base_url=service.base_url, timeout=60) as client:
            yield Memory(
                add,
                search,
                settle,
                rest,
                lambda: sum(sum(each.cpu_times()[:2]) for each in _with_children(process)),
                lambda: sum(each.memory_info().rss for each in _with_children(process)),
                began,
            )


def _with_children(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _from_threads() -> Wait[Any]:
    """Returns a function by which another thread runs a coroutine on this thread's loop and waits for its result."""
    loop = asyncio.get_running_loop()
    return lambda work: asyncio.run_coroutine_threadsafe(work, loop).result()


@asynccontextmanager
async def _owner(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        yield connection
    finally:
        await connection.close()
