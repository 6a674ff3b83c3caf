"""Speed of a retain: against a bare INSERT and COMMIT of the same row, and what the rest of its time is spent on."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

import asyncpg
import uuid_utils.compat as uuids

from app.admission.admission import Wanted
from app.postgres.pools import service_database
from bench.bank import CLIENTS, WARM_UP, Bank, filled
from bench.fill import AGENT, tasks
from bench.measure import Measurement, interleaved, p50
from bench.real import real_lines, real_run, skipped
from bench.stages import StageTimes
from retrieval.database.database import Database
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.retain.retain import retain as retain_run
from writer.retain.statements import INSERTED
from writer.run import FinishedRun

ROUNDS = 400
TURNS = 6
TURN_S = 1.0
COPIED = 100
"""Runs whose rows the bare inserts copy."""
_TASKS = list(tasks(5, 10_000))
_COLUMNS = ", ".join(INSERTED)
_BARE = f"INSERT INTO cases ({_COLUMNS}) VALUES ({', '.join(f'${n + 1}' for n in range(len(INSERTED)))})"


async def retain(home: Path, data: Path | None) -> list[Measurement]:
    """Measures the time of a retain, and retains a second, against bare inserts: of short runs and of real agents'."""
    lines = real_lines(data)
    async with filled(home, users=50) as bank:
        async with _writing(bank) as writing:
            measured = [*await _latency(writing), await _throughput(writing)]
        if not lines:
            return [*measured, skipped("retain, real runs")]
        async with _writing(bank, lambda number: real_run(lines[number % len(lines)])) as writing:
            real = [*await _latency(writing), await _throughput(writing)]
    return [*measured, *(replace(each, name=f"{each.name}, real runs") for each in real)]


async def latency(bank: Bank) -> list[Measurement]:
    """Measures how long a retain takes on this bank, against a bare insert, and its parts."""
    async with _writing(bank) as writing:
        return await _latency(writing)


def short_run(number: int) -> FinishedRun:
    """Returns a run of one sentence and three calls."""
    return FinishedRun(
        agent=AGENT,
        task=_TASKS[number % len(_TASKS)],
        plan=["look", "change", "check"],
        outcome="success",
        tool_traces=[{"tool": "sql", "input": {"q": "SELECT 1"}, "output": "1"}] * 3,  # type: ignore[list-item]
    )


@asynccontextmanager
async def _writing(bank: Bank, run_of: Callable[[int], FinishedRun] = short_run) -> AsyncIterator["_Writing"]:
    async with service_database(bank.url, pool_size=CLIENTS) as database:
        writing = _Writing(bank, database, run_of)
        for number in range(COPIED):  # makes the profile and the key, and the rows that the bare inserts copy
            await writing.ours(number)
        await writing.prepare()
        yield writing


class _Writing:
    """The two ways to write the same rows."""

    def __init__(self, bank: Bank, database: Database, run_of: Callable[[int], FinishedRun]) -> None:
        self.bank = bank
        self.database = database
        self.run_of = run_of
        self.keyring = Keyring(os.urandom(32), seals_words=True)
        user = f"writer-{uuids.uuid7()}"
        self.author = Author(user, user, datetime.now(UTC))
        self.rows: list[list[object]] = []

    async def prepare(self) -> None:
        """Reads back what retains wrote, to be written again by bare inserts."""
        mine = f"SELECT {_COLUMNS} FROM cases WHERE user_sub = $1 ORDER BY id"
        self.rows = [list(row) for row in await self.bank.bare.fetch(mine, self.author.user_sub)]

    async def ours(self, number: int) -> None:
        """Retains one run."""
        run = self.run_of(number)
        admission = self.bank.admission
        async with admission.admitted(self.author, Wanted("POST", "/v1/retain")):
            await admission.of_agent(self.author, "writes", run.agent)
            await retain_run(self.database, self.keyring, run, self.author)
            admission.backlog.took(self.author.user_sub)

    async def bare(self, connection: asyncpg.Connection, number: int) -> None:
        """Inserts the row of the same run under a new id; outside a block, so that it commits."""
        row = self.rows[number % len(self.rows)]
        values = [uuids.uuid7() if name == "id" else value for name, value in zip(INSERTED, row, strict=True)]
        await connection.execute(_BARE, *values)


async def _latency(writing: _Writing) -> list[Measurement]:
    async def bare(number: int) -> None:
        await writing.bare(writing.bank.bare, number)

    await interleaved(WARM_UP, writing.ours, bare)
    before = StageTimes.so_far()
    ours, plain = await interleaved(ROUNDS, writing.ours, bare)
    detail = f"p50 {p50(ours):.2f} ms against {p50(plain):.2f} ms"
    stages = StageTimes.so_far().since(before).seconds
    whole, statement = fmean(ours), fmean(plain)
    prepare, seal, store = (stages[f"retain.{name}"] / ROUNDS * 1e3 for name in ("redact", "seal", "insert"))
    parts = {
        "prepare: check, redact, hash and pack": prepare,
        "seal words and payload": seal,
        "a bare INSERT + COMMIT": statement,
        "the rest of the store: the user's role, references, the driver": store - seal - statement,
        "admission, and the rest": whole - prepare - store,
    }
    return [
        Measurement("retain in-process / bare INSERT + COMMIT", p50(ours) / p50(plain), "x", detail, aim=2),
        *(  # parts of the mean: those of a median do not add up
            Measurement(f"retain: {name}", part, "ms", f"{part / whole:.0%} of it, mean of {ROUNDS}")
            for name, part in parts.items()
        ),
    ]


async def _throughput(writing: _Writing) -> Measurement:
    connections = [await asyncpg.connect(writing.bank.url.replace("+asyncpg", "")) for _ in range(CLIENTS)]
    try:
        plain, ours = 0.0, 0.0
        for _ in range(TURNS):  # in turn, so that both meet the same noise
            plain += await _per_second(lambda client, number: writing.bare(connections[client], number)) / TURNS
            ours += await _per_second(lambda _client, number: writing.ours(number)) / TURNS
    finally:
        for connection in connections:
            await connection.close()
    detail = f"{ours:.0f}/s against {plain:.0f}/s, {CLIENTS} clients, {TURNS} turns of {TURN_S:g} s each"
    return Measurement("retains/s / bare inserts/s", ours / plain, "x", detail, aim=0.5, at_least=True)


async def _per_second(act: Callable[[int, int], Awaitable[None]]) -> float:
    """Returns how many acts a second CLIENTS loops complete together."""
    until = time.perf_counter() + TURN_S
    done = 0

    async def loop(client: int) -> None:
        nonlocal done
        while time.perf_counter() < until:
            await act(client, done)
            done += 1

    await asyncio.gather(*(loop(client) for client in range(CLIENTS)))
    return done / TURN_S
