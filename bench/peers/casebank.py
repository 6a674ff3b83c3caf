"""casebank as a memory of the benchmark: in this process, and over HTTP."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import httpx
import psutil

from app.postgres.pools import service_database
from app.processes.own_service import OwnService, own_service
from app.providers.wordllama import WordLlamaEmbedder
from app.settings.numbers import Limits
from bench.bank import empty, settings_of
from bench.peers.memory import FIRST, Memory
from bench.peers.runs import USERS, PastRun
from bench.real import AGENT
from retrieval.ranking.question import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import Search
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.privacy.words import WordSeals
from writer.queue.worker import Worker
from writer.retain.retain import retain

LOOK_S = 0.05
"""Seconds between two looks for pending cases."""
Result = TypeVar("Result")


@dataclass
class _Casebank(Memory):
    """A casebank whose coroutines run on the loop, which another thread calls.

    Attributes:
        numbers: number of the run by its case's id.
    """

    loop: asyncio.AbstractEventLoop
    numbers: dict[UUID, int] = field(default_factory=dict)

    def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Returns the result of the work."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


@dataclass
class InProcess(_Casebank):
    """A casebank in this process: a reader, and a worker that makes cases ready once the runs are retained."""

    worker: Worker = field(kw_only=True)
    reader: Reader = field(kw_only=True)

    def add(self, run: PastRun) -> None:
        """Retains the run."""
        author = Author(run.user, run.user, datetime.now(UTC))
        kept = self.wait(retain(self.worker.database, self.worker.keyring, run.retained, author))
        self.numbers[kept.case_id] = run.number

    def settle(self) -> None:
        """Runs the worker until it has no more work."""
        while self.wait(self.worker.run_once()):
            pass

    def search(self, user: str, text: str) -> list[int]:
        """Retrieves."""
        question = Question(Search(AGENT, text), k=FIRST)
        return [
            self.numbers[choice.row.id]
            for choice in self.wait(self.reader.retrieve(user, datetime.now(UTC), question)).choices
        ]


@asynccontextmanager
async def in_process(home: Path) -> AsyncIterator[Memory]:
    """Yields an empty casebank in this process."""
    keyring, embedder = Keyring(os.urandom(32), seals_words=True), WordLlamaEmbedder()
    async with service_database(await empty(home, "peers_in_process")) as database:
        reader = Reader(database, embedder, explore=True, seals=WordSeals(keyring))
        worker = Worker(database, embedder, keyring)
        yield InProcess(asyncio.get_running_loop(), worker=worker, reader=reader)


@dataclass
class OverHttp(_Casebank):
    """A service with its worker, asked by one HTTP client for all threads."""

    service: OwnService = field(kw_only=True)
    client: httpx.Client = field(kw_only=True)
    owner: asyncpg.Connection = field(kw_only=True)
    headers: dict[str, dict[str, str]] = field(kw_only=True)

    def add(self, run: PastRun) -> None:
        """Retains the run."""
        answer = self._post(run.user, "/v1/retain", run.retained.model_dump(mode="json", exclude_defaults=True))
        self.numbers[UUID(answer["case_id"])] = run.number

    def settle(self) -> None:
        """Waits until no case is pending."""
        while self.wait(self.owner.fetchval("SELECT EXISTS (SELECT FROM cases WHERE status = 'pending')")):
            time.sleep(LOOK_S)

    def search(self, user: str, text: str) -> list[int]:
        """Retrieves."""
        answer = self._post(user, "/v1/retrieve", {"agent": AGENT, "query": text, "k": FIRST})
        return [self.numbers[UUID(case["case_id"])] for case in answer["cases"]]

    def processor_s(self) -> float:
        """Returns the processor time of the service's processes; the client's is not in it."""
        service = psutil.Process(self.service.pid)
        return sum(sum(each.cpu_times()[:2]) for each in (service, *service.children(recursive=True)))

    def _post(self, user: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.client.post(path, json=body, headers=self.headers[user])
        answer.raise_for_status()
        parsed: dict[str, Any] = answer.json()
        return parsed


@asynccontextmanager
async def over_http(home: Path) -> AsyncIterator[Memory]:
    """Yields an empty casebank that a service of its own serves, without limits of requests a minute."""
    url = await empty(home, "peers_http")
    unlimited = {name: 0 for name in Limits.model_fields if name.endswith(("_reads", "_writes"))}
    settings = settings_of(home, url, os.urandom(32)).model_copy(update={"limits": Limits(**unlimited)})
    owner = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        async with own_service(settings) as service:
            with httpx.Client(base_url=service.base_url, timeout=60) as client:
                headers = {user: service.headers(user) for user in USERS}
                loop = asyncio.get_running_loop()
                yield OverHttp(loop, service=service, client=client, owner=owner, headers=headers)
    finally:
        await owner.close()
