"""A large bank beside a small one: a retrieve in each, size, a night, and one service process beside two."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import httpx
import psutil

from app.processes.own_service import OwnService, own_service
from app.training.command import engine
from bench.bank import CLIENTS, WARM_UP, Bank, filled
from bench.fill import AGENT, tasks
from bench.measure import Measurement, interleaved, p50, p95, timed_ms
from retrieval.ranking.retrieved import Question
from retrieval.search.candidates import CaseSearch
from writer.profiles import Profile
from writer.training.candidates import Recipe
from writer.training.nightly import learn
from writer.upkeep.prune import prune

USERS = 10_000
PER_USER = 100
SMALL = 100
"""Users of the small bank: 10,000 cases."""
ROUNDS = 400
NIGHTS = 20
"""Profiles of which a night is measured."""
REQUESTS_PER_CLIENT = 40


async def scale(home: Path, users: int = USERS) -> list[Measurement]:
    """Measures a bank of ``users`` users with 100 cases each against one of 100 users."""
    async with filled(home, SMALL, per_user=PER_USER) as small:
        began = time.perf_counter()
        async with filled(home, users, per_user=PER_USER) as large:
            filling = f"filled by statements of the server in {time.perf_counter() - began:.0f} s"
            return [
                *await _retrieves(small, large),
                await _size(large, filling),
                await _night(large),
                *await _replicas(large),
            ]


async def _retrieves(small: Bank, large: Bank) -> list[Measurement]:
    """Measures retrieves in both banks in turn; in the large one of users who have not asked before, and once more."""
    queries = list(tasks(3, 2 * (ROUNDS + WARM_UP)))

    def reading(bank: Bank, visit: int = 0) -> Callable[[int], Awaitable[None]]:
        async def read(number: int) -> None:
            user = f"user-{number * 7919 % bank.users + 1}"  # neighbours on disk do not follow each other
            await bank.reader.retrieve(user, bank.now, Question(CaseSearch(AGENT, queries[2 * number + visit])))

        return read

    acts = reading(small), reading(large), reading(large, visit=1)
    await interleaved(WARM_UP, *acts)
    few, first, again = await interleaved(ROUNDS, *acts)
    return [
        Measurement(
            f"retrieve in {_cases(large)} / in {_cases(small)}: {name}, {visit}",
            find(many) / find(few),
            "x",
            f"{find(many):.2f} ms against {find(few):.2f} ms, {large.users:,} against {small.users:,} users",
            aim=1.2,
        )
        for name, find in (("p50", p50), ("p95", p95))
        for visit, many in (("a user's first", first), ("a user's second", again))
    ]


def _cases(bank: Bank) -> str:
    return f"{bank.users * PER_USER:,} cases"


async def _size(bank: Bank, filling: str) -> Measurement:
    """Measures the bytes of a case with its vector and its share of every index."""
    names = ("cases", "case_embeddings")
    sizes = [await bank.bare.fetchval("SELECT pg_total_relation_size($1::regclass)", name) for name in names]
    whole = await bank.bare.fetchval("SELECT pg_database_size(current_database())")
    detail = f"the database has {whole / 1e9:.2f} GB for {_cases(bank)}; {filling}"
    return Measurement(
        "a case on disk, with its vector and indexes", sum(sizes) / bank.users / PER_USER / 1e3, "kB", detail
    )


async def _night(bank: Bank) -> Measurement:
    """Measures the night of single profiles: replay, training where it is due, and pruning."""

    async def night(number: int) -> None:
        profile = Profile(f"user-{number * 7 + 1}", AGENT, datetime.now(UTC))
        async for _result in learn(bank.reader.database, Recipe(engine("local")), profile):
            pass
        await prune(bank.reader.database, profile, now=datetime.now(UTC))

    (times,) = await interleaved(NIGHTS, night)
    hours = bank.users * sum(times) / NIGHTS / 3.6e6
    parts = f"p50 of {NIGHTS} profiles of {PER_USER} cases: replay, no training due, pruning"
    detail = f"{parts}; {hours:.1f} h for all {bank.users:,} by one process"
    return Measurement("a night of one profile", p50(times), "ms", detail)


async def _replicas(bank: Bank) -> list[Measurement]:
    """Measures retrieves over HTTP at one service process, then at two on the same database."""
    async with AsyncExitStack() as stack:
        services = [await stack.enter_async_context(own_service(bank.settings)) for _ in range(2)]
        await _load(services)
        one = await _load(services[:1])
        two = await _load(services)
    detail = f"{two[0]:.2f} ms of the processes' own time against {one[0]:.2f}, {CLIENTS} clients, {CLIENTS} users"
    rate = f"{two[1]:.0f} a second against {one[1]:.0f}, on {psutil.cpu_count()} cores that database and clients share"
    return [
        Measurement("processor of a retrieve over HTTP, two processes / one", two[0] / one[0], "x", detail, aim=1.2),
        Measurement("retrieves a second over HTTP, two processes / one", two[1] / one[1], "x", rate),
    ]


async def _load(services: Sequence[OwnService]) -> tuple[float, float]:
    """Sends retrieves of many users to the services; returns processor ms a request, and requests a second."""
    queries = list(tasks(4, REQUESTS_PER_CLIENT))
    processes = [psutil.Process(service.pid) for service in services]

    async def one_client(number: int) -> list[float]:
        service = services[number % len(services)]
        headers = service.headers(f"user-{number + 1}")
        async with httpx.AsyncClient(base_url=service.base_url, headers=headers, timeout=30) as client:
            return [
                await timed_ms(lambda: client.post("/v1/retrieve", json={"agent": AGENT, "query": query}))  # noqa: B023
                for query in queries
            ]

    def spent_s() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    before, began = spent_s(), time.perf_counter()
    await asyncio.gather(*(one_client(number) for number in range(CLIENTS)))
    requests = CLIENTS * REQUESTS_PER_CLIENT
    return (spent_s() - before) * 1000 / requests, requests / (time.perf_counter() - began)
