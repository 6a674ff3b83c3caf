"""Speed of a retrieve: against the bare statement, over HTTP under load, and in a growing bank."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from app.admission.admission import Wanted
from app.processes.own_service import OwnService, own_service
from app.settings.numbers import Limits
from bench.bank import CLIENTS, WARM_UP, Bank, DatabaseServer, filled
from bench.fill import AGENT, CASES_PER_USER, tasks
from bench.measure import Measurement, interleaved, p50, p95, timed_ms
from bench.real import remembered, skipped
from bench.stages import StageTimes
from retrieval.ranking.retrieved import Question
from retrieval.search.candidates import CaseSearch, candidates
from writer.author import Author

ROUNDS = 400
REQUESTS_PER_CLIENT = 60
HTTP_USERS = 20
REAL = "retrieve among real runs"
SMALL, MIDDLE, LARGE = 50, 500, 2_000
"""Profiles of 200 cases: banks of 10,000, 100,000 and 400,000."""
STAGES = {
    "retrieve.embed": "the query's vector",
    "retrieve.candidates": "the candidates' statement",
    "retrieve.rank": "procedures, facts and features",
    "reuse": "scores, slate and text",
    "retrieve.log": "the log's statement and the answer",
}
"""Stages of a retrieve in their order, by their names in the service's own metric."""


async def retrieve(home: Path, data: Path | None) -> list[Measurement]:
    """Measures retrieve in the process against the same statement through bare asyncpg, and its time by stage.

    In two banks: the synthetic one, without procedures, and one of real runs with what was learned from them.
    """
    measured: list[Measurement] = []
    async with filled(home, MIDDLE, sealed=True) as bank:
        measured += await _by_stage(bank, "retrieve", aim=1.5)
    async with remembered(home, data) as real:
        return measured + (await _by_stage(real, REAL, aim=2) if real else [skipped(REAL)])


async def _by_stage(bank: Bank, name: str, aim: float) -> list[Measurement]:
    before = StageTimes.so_far()
    whole = await latency(bank, name, aim)
    return [whole, *StageTimes.so_far().since(before).of("retrieve", STAGES, name)]


async def latency(bank: Bank, name: str = "retrieve", aim: float = 1.5) -> Measurement:
    """Measures retrieve in the process against its bare statement on this bank."""
    queries = bank.asked(2, ROUNDS + WARM_UP)
    vectors = await bank.reader.embedder.embed(queries)

    async def whole(number: int) -> None:
        search = CaseSearch(bank.agent, queries[number])
        author = Author(bank.user(number), "bench", bank.now)
        async with bank.admission.admitted(author, Wanted("POST", "/v1/retrieve")):
            await bank.admission.of_agent(author, "reads", bank.agent)
            await bank.reader.retrieve(author.user_sub, bank.now, Question(search))

    async def bare_statement(number: int) -> None:
        search = CaseSearch(bank.agent, queries[number], vectors[number].tolist(), bank.reader.embedder.model)
        statement, parameters = candidates(search)
        # another user, so that the cache is cold for both
        who = {"user_sub": bank.user(number + bank.users // 2), "authorised_at": bank.now}
        await bank.bare.fetch(statement.sql, *statement.arguments(parameters | who))

    await interleaved(WARM_UP, whole, bare_statement)
    ours, bare = await interleaved(ROUNDS, whole, bare_statement)
    cases = await bank.bare.fetchval("SELECT count(*) FROM cases")
    detail = f"p50 {p50(ours):.2f} ms against {p50(bare):.2f} ms, {cases:,} cases of {bank.users} profiles"
    return Measurement(f"{name} in-process / bare statement", p50(ours) / p50(bare), "x", detail, aim=aim)


async def growth(home: Path) -> list[Measurement]:
    """Measures retrieve in 10,000 cases and in 400,000, 200 cases a profile in both, and in a profile of 2,000."""
    async with (
        filled(home, SMALL) as small,
        filled(home, LARGE) as large,
        filled(home, SMALL // 10, per_user=10 * CASES_PER_USER) as deep,
    ):
        queries = list(tasks(3, ROUNDS + WARM_UP))

        def reading(bank: Bank) -> Callable[[int], Awaitable[None]]:
            async def read(number: int) -> None:
                user = bank.user(number * 7)
                await bank.reader.retrieve(user, bank.now, Question(CaseSearch(AGENT, queries[number])))

            return read

        acts = reading(small), reading(large), reading(deep)
        await interleaved(WARM_UP, *acts)
        few, many, deeper = await interleaved(ROUNDS, *acts)
    detail = f"p50 {p50(many):.2f} ms against {p50(few):.2f} ms"
    beside = f"p50, {p50(few):.2f} ms in one of {CASES_PER_USER}"
    return [
        Measurement("retrieve in 400,000 / in 10,000 cases", p50(many) / p50(few), "x", detail, aim=1.3),
        Measurement("retrieve in a profile of 2,000 cases", p50(deeper), "ms", beside, aim=12),
    ]


Whose = Callable[[int, int], int]
"""Returns the number of the user for whom a client asks, by the number of the client and of its request."""


def _own(client: int, _request: int) -> int:
    return client


USERS_OF_CLIENTS: dict[str, Whose] = {
    "a user each": _own,
    "one user": lambda _client, _request: 0,
    "one user after another": lambda _client, request: request // 5,
}


async def http(home: Path, data: Path | None) -> list[Measurement]:
    """Measures retrieve over HTTP with 16 clients at once, its p95 against its p50, on synthetic and on real runs."""
    async with filled(home, MIDDLE) as bank, own_service(bank.settings) as running:
        load = await _load(bank, running, _own)
    detail = f"p95 {p95(load.times):.1f} ms against p50 {p50(load.times):.1f} ms, {CLIENTS} clients"
    measured = [Measurement("retrieve over HTTP p95 / p50", p95(load.times) / p50(load.times), "x", detail, aim=3)]
    async with remembered(home, data, users=HTTP_USERS) as real:
        if real is None:
            return [*measured, skipped(f"{REAL} over HTTP")]
        unlimited = Limits(user_reads=0, agent_reads=0, session_reads=0)
        async with own_service(real.settings.model_copy(update={"limits": unlimited})) as running:
            await _load(real, running, _own)  # warms caches and connections up
            alone = await _load(real, running, _own, clients=1, count=240)
            loads = {who: await _load(real, running, whose) for who, whose in USERS_OF_CLIENTS.items()}
        async with own_service(real.settings.model_copy(update={"limits": unlimited}), processes=2) as running:
            await _load(real, running, _own)
            loads["a user each, two processes"] = await _load(real, running, _own)
    name = f"{REAL} over HTTP"
    cost = f"own {alone.own_ms:.1f} + database {alone.database_ms:.1f} ms"
    measured += [
        Measurement(f"{name}, one client", p50(alone.times), "ms", f"p50, p95 {p95(alone.times):.1f} ms", aim=7),
        Measurement(f"{name}, processor", alone.own_ms + alone.database_ms, "ms", f"{cost}, one client", aim=6),
    ]
    for who, load in loads.items():
        times = f"p50 {p50(load.times):.0f} ms, p95 {p95(load.times):.0f} ms"
        detail = f"{times}, {CLIENTS} clients, own {load.own_ms:.1f} + database {load.database_ms:.1f} ms"
        measured += [
            Measurement(f"{name}, {who}", len(load.times) / load.seconds, "/s", detail, aim=150, at_least=True),
            Measurement(f"{name}, {who}, p95 / p50", p95(load.times) / p50(load.times), "x", detail, aim=3),
        ]
    return measured


@dataclass(frozen=True, slots=True)
class _Load:
    """The times of requests in milliseconds, their span in seconds, and processor milliseconds a request."""

    times: list[float]
    seconds: float
    own_ms: float
    database_ms: float


async def _load(
    bank: Bank, running: OwnService, whose: Whose, clients: int = CLIENTS, count: int = REQUESTS_PER_CLIENT
) -> _Load:
    """Asks from so many clients at once, each for the users that it is told to."""
    queries = bank.asked(4, count)
    headers = {bank.user(number): running.headers(bank.user(number)) for number in range(bank.users)}
    service, server = psutil.Process(running.pid), DatabaseServer(bank.home)
    processes = [service, *(each for each in service.children() if each.name() != "postgres")]

    async def one_client(client: httpx.AsyncClient, number: int) -> list[float]:
        times = []
        for place, query in enumerate(queries):
            of_user = headers[bank.user(whose(number, place))]
            body = {"agent": bank.agent, "query": query}
            times.append(await timed_ms(lambda: client.post("/v1/retrieve", json=body, headers=of_user)))  # noqa: B023
        return times

    async with httpx.AsyncClient(base_url=running.base_url, timeout=30) as client:
        body, first = {"agent": bank.agent, "query": "x"}, headers[bank.user(0)]
        for _ in range(CLIENTS):
            await client.post("/v1/retrieve", json=body, headers=first)
        own, theirs = sum(sum(each.cpu_times()[:2]) for each in processes), server.seconds()
        began = time.perf_counter()
        all_times = await asyncio.gather(*(one_client(client, number) for number in range(clients)))
        seconds = time.perf_counter() - began
    own, theirs = sum(sum(each.cpu_times()[:2]) for each in processes) - own, server.seconds() - theirs
    times = [each for client_times in all_times for each in client_times]
    return _Load(times, seconds, own / len(times) * 1e3, theirs / len(times) * 1e3)
