"""``python -m bench peers``: casebank beside other memories, on the same runs, embedder and machine.

Each memory keeps the runs, 8 clients at a time, and then answers the queries: one client, then 16. A memory in this
process shares its processor with the clients; a service does not. All memories but casebank are asked in their
strongest form: they compare tasks alone, and only those of runs that succeeded. Then a new process opens the memory on
the home as it is, and asks once: the time of its start and its size include the libraries that a memory imports.
"""

import asyncio
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from app import postgres
from bench.bank import DatabaseServer
from bench.measure import p50, p95
from bench.peers.casebank import in_process, over_http
from bench.peers.libraries import chroma, langgraph, mem0
from bench.peers.memory import Memory, PastRun, task_vectors
from bench.peers.runs import read, same_task, same_tools

RUNS, QUERIES = 2_000, 300
WRITERS, READERS, WARM_UP = 8, 16, 16
Opener = Callable[[Path], AbstractAsyncContextManager[Memory]]
Peers = Mapping[str, Opener]
"""Memories by name, each opened in a folder; the others are compared with the first."""
PEERS: Peers = {
    "vectors of solved tasks": task_vectors,
    "casebank, HTTP": over_http,
    "casebank, in process": in_process,
    "LangGraph PostgresStore": langgraph,
    "mem0, pgvector": mem0,
    "chromadb": chroma,
}
SERVERS = {
    "Redis agent-memory-server": "it needs a server of its own",
    "Hindsight": "it needs a server of its own",
}
"""Memories that are never measured, with the reason."""
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Row:
    """Measurements of one memory; speeds are numbers a second.

    Attributes:
        write_ms: processor time of a write and of what makes it ready, without the database's, and the database's.
        search_ms: the same of a search, one client.
        row_kb: bytes on disk, indexes included, of a written run, and of a search, in thousands.
        same_task: true for each query with a result that solved its task.
        same_tools: true for each query with a result that made the right changes.
        cold_s: seconds of a new process from its start, or its service's, to the first answer, on the filled home.
        resident_mb: memory of that process, or of its service's, then, in millions of bytes.
    """

    name: str
    times_ms: Sequence[float]
    searches: float
    acknowledged: float
    ready: float
    write_ms: tuple[float, float]
    search_ms: tuple[float, float]
    row_kb: tuple[float, float]
    same_task: Sequence[bool]
    same_tools: Sequence[bool]
    cold_s: float = math.nan
    resident_mb: float = math.nan


async def peers(home: Path, data: Path, count: int, queries: int, memories: Peers = PEERS) -> list[Row]:
    """Measures each memory that is installed, and prints the table, and the reason for each that is skipped."""
    show = Console().print
    bank, asking = read(data, count, queries)
    if not bank:
        show(f"peers is skipped: fewer than {queries + 1} runs in {data / 'tau'}")
        return []
    postgres.start(home)
    server, rows = DatabaseServer(home), []
    for name, opened in memories.items():
        Console(stderr=True).print(f"{name} ...", style="dim")
        try:
            async with opened(home) as memory:
                row = await asyncio.to_thread(_measure, name, memory, server, bank, asking)
        except ImportError as missing:
            show(f"{name} is skipped: {missing}")
            continue
        cold_s, resident_mb = await asyncio.to_thread(_opened_anew, opened, home, asking[0])
        rows.append(replace(row, cold_s=cold_s, resident_mb=resident_mb))
    for name, reason in SERVERS.items():
        show(f"{name} is skipped: {reason}")
    show(_table(rows, bank, asking))
    return rows


def _measure(
    name: str, memory: Memory, server: DatabaseServer, bank: Sequence[PastRun], asking: Sequence[PastRun]
) -> Row:
    """Fills the memory and asks it."""
    first, *others = bank
    memory.add(first)  # some make their tables

    def processor_ms(before: tuple[float, float], count: int) -> tuple[float, float]:
        return (memory.processor_s() - before[0]) / count * 1e3, (server.seconds() - before[1]) / count * 1e3

    def search(query: PastRun) -> tuple[float, list[int]]:
        started = time.perf_counter()
        found = memory.search(query.user, query.text)
        return (time.perf_counter() - started) * 1e3, found

    empty_bytes = _disk_bytes(server.home)
    before, began = (memory.processor_s(), server.seconds()), time.perf_counter()
    _each(WRITERS, memory.add, others)
    acknowledged_s = time.perf_counter() - began
    memory.settle()
    ready_s, write_ms = time.perf_counter() - began, processor_ms(before, len(others))
    memory.rest()
    kept_bytes = _disk_bytes(server.home)
    _each(READERS, search, asking[:WARM_UP])
    before = memory.processor_s(), server.seconds()
    answers = [search(query) for query in asking]
    search_ms = processor_ms(before, len(asking))
    together_s = _each(READERS, search, asking)
    searched_bytes, searches = _disk_bytes(server.home), WARM_UP + 2 * len(asking)
    runs = {run.number: run for run in bank}
    pairs = [(query, [runs[number] for number in found]) for query, (_, found) in zip(asking, answers, strict=True)]
    return Row(
        name,
        [time_ms for time_ms, _ in answers],
        len(asking) / together_s,
        len(others) / acknowledged_s,
        len(others) / ready_s,
        write_ms,
        search_ms,
        ((kept_bytes - empty_bytes) / len(others) / 1e3, (searched_bytes - kept_bytes) / searches / 1e3),
        [same_task(*pair) for pair in pairs],
        [same_tools(*pair) for pair in pairs],
    )


def _each(clients: int, act: Callable[[Item], object], items: Sequence[Item]) -> float:
    """Runs the act for each item, so many at a time; returns the seconds."""
    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(act, items))
    return time.perf_counter() - began


def _disk_bytes(home: Path) -> int:
    """Returns the bytes of all files below the home but logs, the database's own among them."""
    total = 0
    for file in home.rglob("*"):
        with suppress(FileNotFoundError):
            total += file.stat().st_size * (file.is_file() and "pg_wal" not in file.parts and file.suffix != ".log")
    return total


def _opened_anew(opened: Opener, home: Path, query: PastRun) -> tuple[float, float]:
    """Returns the seconds and the megabytes of a new process that opens the memory and asks once."""
    which = (opened.__module__, opened.__name__, str(home), query.user, query.text, str(time.time()))
    command = (sys.executable, "-m", "bench.peers.cold", *which)
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout  # noqa: S603 - our own module
    seconds, resident_bytes = json.loads(printed.splitlines()[-1])
    return seconds, resident_bytes / 1e6


def _table(rows: Sequence[Row], bank: Sequence[PastRun], asking: Sequence[PastRun]) -> Table:
    own = {query.number: [run for run in bank if run.user == query.user] for query in asking}
    possible = [sum(helps(query, own[query.number]) for query in asking) for helps in (same_task, same_tools)]
    caption = (
        f"{len(bank):,} runs, {len(asking)} queries; in brackets: queries won and lost against {rows[0].name}, "
        "and p of the sign test, two-sided. MB and cold s: a new process that opens the filled memory, or its service, "
        "up to its first answer. "
        f"A bank holds a run that solved the task for {possible[0]} queries, one of the same tools for {possible[1]}."
    )
    heads = (
        "search p50 / p95 ms",
        f"searches/s, {READERS} clients",
        "processor ms a search, own + database",
        f"writes/s, {WRITERS} clients",
        "ready/s",
        "processor ms a write",
        "MB",
        "cold s",
        "kB a row, + a search",
        "same task solved",
        "same tools",
    )
    columns = [
        (
            f"{p50(row.times_ms):.1f} / {p95(row.times_ms):.1f}",
            f"{row.searches:.0f}",
            "{:.1f} + {:.1f}".format(*row.search_ms),
            f"{row.acknowledged:.0f}",
            f"{row.ready:.0f}",
            "{:.1f} + {:.1f}".format(*row.write_ms),
            f"{row.resident_mb:.0f}",
            f"{row.cold_s:.1f}",
            "{:.1f} + {:.1f}".format(*row.row_kb),
            _share(row.same_task, rows[0].same_task),
            _share(row.same_tools, rows[0].same_tools),
        )
        for row in rows
    ]
    table = Table("", *(row.name for row in rows), caption=caption)
    for line in zip(heads, *columns, strict=True):
        table.add_row(*line)
    return table


def _share(hits: Sequence[bool], others: Sequence[bool]) -> str:
    pairs = list(zip(hits, others, strict=True))
    won, lost = sum(hit > other for hit, other in pairs), sum(hit < other for hit, other in pairs)
    return f"{sum(hits) / len(hits):.2f} (+{won} -{lost}, p {sign_test(won, lost):.2g})"


def sign_test(won: int, lost: int) -> float:
    """Returns p of the two-sided sign test: the chance of a difference at least as large if both were equal."""
    tail = sum(math.comb(won + lost, fewer) for fewer in range(min(won, lost) + 1))
    return float(min(1.0, 2 * tail / 2 ** (won + lost)))
