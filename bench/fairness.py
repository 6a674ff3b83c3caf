"""Harm of one user's flood to another user: requests and cases beside the flood and alone, in turn."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from app.postgres.pools import service_database
from app.processes.own_service import OwnService, own_service
from app.settings import Settings
from bench.bank import filled
from bench.fill import AGENT, tasks
from bench.flood import Flood, beside
from bench.measure import Measurement, p50, p95, timed_ms
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.retain.retain import retain
from writer.run import FinishedRun

CONNECTIONS = 60
ROUNDS = 2
WINDOW_S = 3.0
"""Seconds of each of the three measurements in a round."""
THINKS_S = 0.05
"""Seconds between two requests of the bystander."""
BACKLOG = 2_000
CASES = 8
"""Cases of the bystander whose wait is measured behind each backlog."""
DRAINED_WITHIN_S = 90.0
FLOODS, STANDS_BY = "user-1", "user-2"
RETRIEVE, RETAIN = "/v1/retrieve", "/v1/retain"


async def fairness(home: Path) -> list[Measurement]:
    """Measures a bystander's requests and cases beside the flood of another, and behind the other's pending cases."""
    async with (
        filled(home, users=50) as bank,
        own_service(bank.settings) as running,
        _bystander(running) as bystander,
    ):
        measured = [
            await _beside("retrieve", bystander, partial(_flood, running, RETRIEVE)),
            await _beside("retrieve", bystander, partial(_flood, running, RETRIEVE, polite=True)),
            await _beside("retain", bystander, partial(_flood, running, RETAIN)),
        ]
        return [*measured, *await _cases(bystander, running), await _behind(bystander, bank.settings)]


@dataclass
class _Bystander:
    """A user with a request now and then."""

    client: httpx.AsyncClient
    texts: list[str]
    requests: int = 0

    async def retrieve(self) -> None:
        await self._post(RETRIEVE, {"agent": AGENT, "query": self._text()})

    async def retain(self) -> str:
        answer = await self._post(RETAIN, {"agent": AGENT, "task": self._text(), "outcome": "success"})
        return str(answer.json()["case_id"])

    async def ready_s(self) -> float:
        """Retains a run and returns the seconds until its case is ready."""
        started, case_id = time.perf_counter(), await self.retain()
        while (await self.client.get(f"/v1/cases/{case_id}")).json()["status"] == "pending":  # noqa: ASYNC110 - the service sends no notice
            await asyncio.sleep(0.02)
        return time.perf_counter() - started

    async def drained(self) -> None:
        """Waits until no case is pending."""
        async with asyncio.timeout(DRAINED_WITHIN_S):
            while (await self.client.get("/readyz")).json()["queue"].get("pending"):  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.1)

    async def _post(self, path: str, body: dict[str, object]) -> httpx.Response:
        return (await self.client.post(path, json=body)).raise_for_status()

    def _text(self) -> str:
        self.requests += 1
        return self.texts[self.requests % len(self.texts)]


@asynccontextmanager
async def _bystander(running: OwnService) -> AsyncIterator[_Bystander]:
    async with httpx.AsyncClient(base_url=running.base_url, headers=running.headers(STANDS_BY), timeout=60) as client:
        bystander = _Bystander(client, list(tasks(8, 5_000)))
        for _ in range(20):
            await bystander.retrieve()
        yield bystander


def _flood(running: OwnService, path: str, *, polite: bool = False) -> Flood:
    text = {RETRIEVE: "query", RETAIN: "task"}[path]
    body: dict[str, object] = {"agent": AGENT, text: "rename the column of the table users"}
    if path == RETAIN:
        body["outcome"] = "success"
    port = urlsplit(running.base_url).port or 0
    return Flood(port, path, running.headers(FLOODS), body, CONNECTIONS, WINDOW_S + 1, polite)


@dataclass
class _Times:
    """The bystander's times, in milliseconds or seconds, and the answers to the flood by status."""

    alone: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    """Alone, after the flood: what differs from ``alone`` is the machine's."""
    beside: list[float] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)


async def _beside(what: str, bystander: _Bystander, flood: Callable[[], Flood]) -> Measurement:
    """Measures one kind of request, alone and beside a flood, in turn."""
    act: Callable[[], Awaitable[object]] = {"retrieve": bystander.retrieve, "retain": bystander.retain}[what]
    times, sent = _Times(), flood()
    for _ in range(ROUNDS):
        times.alone += await _for_a_while(act)
        async with beside(sent) as answered:
            await asyncio.sleep(0.5)
            times.beside += await _for_a_while(act)
        times.answered.update(answered)
        await bystander.drained()
        times.again += await _for_a_while(act)
    alone = times.alone + times.again
    how = "polite" if sent.polite else "rude"
    detail = (
        f"p50 {p50(times.beside):.1f} ms against {p50(alone):.1f} ms, p95 {p95(times.beside):.1f} ms against"
        f" {p95(alone):.1f} ms; alone after / before it {p95(times.again) / p95(times.alone):.2f} x;"
        f" {_answers(times.answered)}"
    )
    name = f"{what} p95 beside a {how} flood of {sent.path} / alone"
    return Measurement(name, p95(times.beside) / p95(alone), "x", detail, aim=1.2)


async def _for_a_while(act: Callable[[], Awaitable[object]]) -> list[float]:
    times, until = [], time.perf_counter() + WINDOW_S
    while time.perf_counter() < until:
        times.append(await timed_ms(act))
        await asyncio.sleep(THINKS_S)
    return times


async def _cases(bystander: _Bystander, running: OwnService) -> list[Measurement]:
    """Measures how much later a case is ready beside a flood of retains."""
    times = _Times()
    for _ in range(ROUNDS):
        times.alone += [await bystander.ready_s() for _ in range(CASES)]
        async with beside(_flood(running, RETAIN)) as answered:
            await asyncio.sleep(0.5)
            times.beside += [await bystander.ready_s() for _ in range(CASES)]
        times.answered.update(answered)
        await bystander.drained()
    later = max(times.beside) - p50(times.alone)
    detail = f"the slowest of {len(times.beside)}, against p50 {p50(times.alone):.2f} s; {_answers(times.answered)}"
    return [Measurement("a case is ready later beside a flood of retains", later, "s", detail, aim=2)]


async def _behind(bystander: _Bystander, settings: Settings) -> Measurement:
    """Measures how much later a case is ready behind many pending ones of another."""
    alone = [await bystander.ready_s() for _ in range(CASES)]
    await _pile_up(settings)
    behind = [await bystander.ready_s() for _ in range(CASES)]
    left = (await bystander.client.get("/readyz")).json()["queue"].get("pending", 0)
    detail = f"the slowest of {CASES}, against p50 {p50(alone):.2f} s; {left} were still pending after them"
    name = f"a case is ready later behind {BACKLOG:,} of another"
    return Measurement(name, max(behind) - p50(alone), "s", detail, aim=2)


async def _pile_up(settings: Settings) -> None:
    """Retains many runs of the user who floods, past the service."""
    author, keyring = Author(FLOODS, FLOODS, datetime.now(UTC)), Keyring(settings.master_key_bytes)
    texts = iter(tasks(9, BACKLOG))

    async def keep() -> None:
        for text in texts:
            run = FinishedRun(agent=AGENT, task=text, outcome="success")
            await retain(database, keyring, run, author)

    async with service_database(str(settings.database_url), pool_size=8) as database:
        await asyncio.gather(*(keep() for _ in range(8)))


def _answers(answered: Counter[str]) -> str:
    return "the flood got " + ", ".join(f"{count} x {status}" for status, count in sorted(answered.items()))
