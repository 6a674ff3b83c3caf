"""Speed of a retrieve: against the bare statement, over HTTP under load, and in a growing bank."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from app.admission.admission import Wanted
from app.processes.own_service import own_service
from bench.bank import CLIENTS, WARM_UP, Bank, filled
from bench.fill import AGENT, tasks
from bench.measure import Measurement, interleaved, p50, p95, timed_ms
from bench.stages import StageTimes
from retrieval.ranking.question import Question
from retrieval.search.candidates import Search, candidates
from writer.author import Author

ROUNDS = 400
REQUESTS_PER_CLIENT = 60
SMALL, MIDDLE, LARGE = 50, 500, 2_000
"""Profiles of 200 cases: banks of 10,000, 100,000 and 400,000."""
STAGES = {
    "retrieve.embed": "the query's vector",
    "retrieve.candidates": "the candidates' statement, and the user's key the first time",
    "retrieve.rank": "features",
    "reuse": "scores, slate and context",
    "retrieve.log": "the statement of the log",
}
"""Stages of a retrieve in their order, by their names in the service's own metric."""


async def retrieve(home: Path) -> list[Measurement]:
    """Measures retrieve in the process against the same statement through bare asyncpg, and its time by stage."""
    async with filled(home, MIDDLE, sealed=True) as bank:
        before = StageTimes.so_far()
        whole = await latency(bank)
        return [whole, *StageTimes.so_far().since(before).of("retrieve", STAGES)]


async def latency(bank: Bank) -> Measurement:
    """Measures retrieve in the process against its bare statement on this bank."""
    queries = list(tasks(2, ROUNDS + WARM_UP))
    vectors = await bank.reader.embedder.embed(queries)

    async def whole(number: int) -> None:
        search = Search(AGENT, queries[number])
        author = Author(_user(bank, number), "bench", bank.now)
        async with bank.admission.admitted(author, Wanted("reads")):
            await bank.admission.of_agent(author, "reads", AGENT)
            await bank.reader.retrieve(author.user_sub, bank.now, Question(search))

    async def bare_statement(number: int) -> None:
        search = Search(AGENT, queries[number], vectors[number].tolist(), bank.reader.embedder.model)
        statement, parameters = candidates(search)
        # another user, so that the cache is cold for both
        who = {"user_sub": _user(bank, number + bank.users // 2), "authorised_at": bank.now}
        await bank.bare.fetch(statement.sql, *statement.arguments(parameters | who))

    await interleaved(WARM_UP, whole, bare_statement)
    ours, bare = await interleaved(ROUNDS, whole, bare_statement)
    ratio = p50(ours) / p50(bare)
    detail = f"p50 {p50(ours):.2f} ms against {p50(bare):.2f} ms, {bank.users * 200:,} cases of {bank.users} profiles"
    return Measurement("retrieve in-process / bare statement", ratio, "x", detail, aim=1.5)


def _user(bank: Bank, number: int) -> str:
    return f"user-{number % bank.users + 1}"


async def growth(home: Path) -> list[Measurement]:
    """Measures retrieve in 10,000 cases against 400,000, in turn, 200 cases a profile in both."""
    async with filled(home, SMALL) as small, filled(home, LARGE) as large:
        queries = list(tasks(3, ROUNDS + WARM_UP))

        def reading(bank: Bank) -> Callable[[int], Awaitable[None]]:
            async def read(number: int) -> None:
                user = _user(bank, number * 7)
                await bank.reader.retrieve(user, bank.now, Question(Search(AGENT, queries[number])))

            return read

        acts = reading(small), reading(large)
        await interleaved(WARM_UP, *acts)
        few, many = await interleaved(ROUNDS, *acts)
    detail = f"p50 {p50(many):.2f} ms against {p50(few):.2f} ms"
    return [Measurement("retrieve in 400,000 / in 10,000 cases", p50(many) / p50(few), "x", detail, aim=1.3)]


async def http(home: Path) -> list[Measurement]:
    """Measures retrieve over HTTP with 16 clients at once, its p95 against its p50."""
    async with filled(home, MIDDLE) as bank, own_service(bank.settings) as running:
        queries = list(tasks(4, REQUESTS_PER_CLIENT))

        async def one_client(client: httpx.AsyncClient, number: int) -> list[float]:
            times = []
            headers = running.headers(f"user-{number + 1}")
            for query in queries:
                body = {"agent": AGENT, "query": query}
                times.append(await timed_ms(lambda: client.post("/v1/retrieve", json=body, headers=headers)))  # noqa: B023
            return times

        first = running.headers("user-1")
        async with httpx.AsyncClient(base_url=running.base_url, timeout=30) as client:
            for _ in range(CLIENTS):
                await client.post("/v1/retrieve", json={"agent": AGENT, "query": "x"}, headers=first)
            all_times = await asyncio.gather(*(one_client(client, number) for number in range(CLIENTS)))
    times = [time for client_times in all_times for time in client_times]
    detail = f"p95 {p95(times):.1f} ms against p50 {p50(times):.1f} ms, {CLIENTS} clients, {len(times)} requests"
    return [Measurement("retrieve over HTTP p95 / p50", p95(times) / p50(times), "x", detail, aim=3)]
