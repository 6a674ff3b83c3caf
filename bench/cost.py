"""Cost of a case: bytes on disk, size of the indexes, and time, against the figures of the last release and fixed aims.

Bytes are compared directly, for the same workload takes the same room on any machine; times only as ratios within one
run. ``cost.json`` beside this module has the figures; ``python -m bench cost --keep`` writes the current ones.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import asyncpg

from app.postgres.pools import service_database
from app.providers.wordllama import WordLlamaEmbedder
from bench.bank import empty, filled
from bench.fill import AGENT, tasks
from bench.measure import Measurement
from bench.read import latency as read_latency
from bench.write import latency as write_latency
from retrieval.database.database import Database
from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.metadata import USER_TABLES
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.run import FinishedRun

LAST = Path(__file__).with_name("cost.json")
"""The figures of the last release, by name."""
RUNS = 500
USERS = 5
RETRIEVES_PER_RUN = 1
BANK_USERS = 50
TOLERANCE = 10.0
"""Percent by which a size may be larger than it was."""
NOISE = 4
"""Factor on the tolerance for ratios of times, which vary between runs on a busy machine."""

AIMS = {"a case in all": 4_000, "a decision in all": 2_500}
"""Fixed aims for a case and a decision, in bytes with their indexes; a missed one is printed, and fails no release."""

_DECISIONS = ("decisions", "decision_slots")
_SIZES = """
SELECT relname AS name, pg_table_size(oid) AS heap, pg_indexes_size(oid) AS indexes FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relname = ANY($1)
"""

Figures = Mapping[str, float]


async def cost(home: Path, runs: int = RUNS) -> list[Measurement]:
    """Measures the cost of a case: bytes, and times as multiples of the bare statements on the same bank."""
    room = await sizes(home, runs)
    async with filled(home, BANK_USERS, sealed=True) as bank:
        read, (written, *_) = await read_latency(bank), await write_latency(bank)
    times = [replace(read, name="a retrieve / its statement"), replace(written, name="a retain / its INSERT")]
    return [*room, *(replace(each, aim=None) for each in times)]


def figures(file: Path = LAST) -> Figures:
    """Returns the figures in the file, by name."""
    read: Figures = json.loads(file.read_text())["figures"]
    return read


def against(measured: Sequence[Measurement], last: Figures, tolerance: float = TOLERANCE) -> list[Measurement]:
    """Returns the measurements; where a last figure exists, the aim is that figure plus the tolerance.

    Args:
        measured: measurements of any benchmarks.
        last: figures by name.
        tolerance: percent by which a size may be larger; a ratio of times may be NOISE times that.
    """
    return [_compared(each, last[each.name], tolerance) if each.name in last else each for each in measured]


def keep(measured: Sequence[Measurement], release: str, file: Path = LAST) -> None:
    """Writes the measurements, those with fixed aims left out, as the figures of the release."""
    rounded = {each.name: round(each.value, 2) for each in measured if each.name not in AIMS}
    file.write_text(json.dumps({"release": release, "figures": rounded}, indent=2) + "\n")


def _compared(now: Measurement, last: float, tolerance: float) -> Measurement:
    allowed = tolerance * (NOISE if now.unit == "x" else 1)
    change = (now.value / last - 1) * 100
    return replace(now, aim=round(last * (1 + allowed / 100), 2), detail=f"{change:+.1f} %; {now.detail}")


async def sizes(home: Path, runs: int) -> list[Measurement]:
    """Returns the bytes that a retained run, and a decision, take when all of them are ready and compact."""
    url = await empty(home, "bench_cost")
    owner = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        before = await _compact_sizes(owner)
        async with service_database(url) as database:
            await _work(database, runs)
        after = await _compact_sizes(owner)
    finally:
        await owner.close()
    grown = {name: (after[name][0] - before[name][0], after[name][1] - before[name][1]) for name in after}
    kept = {name: sizes for name, sizes in grown.items() if name not in _DECISIONS}
    detail = f"{runs:,} runs of {USERS} users, words sealed, tables compact"
    decided = sum(sum(grown[name]) for name in _DECISIONS) / (runs * RETRIEVES_PER_RUN)
    tables, indexes = (sum(sizes[place] for sizes in kept.values()) / runs for place in range(2))
    in_all = zip(AIMS.items(), (tables + indexes, decided), strict=True)
    return [
        Measurement("a case: tables", tables, "bytes", detail),
        Measurement("a case: indexes", indexes, "bytes", detail),
        Measurement("a case: its vector", sum(grown["case_embeddings"]) / runs, "bytes", detail),
        Measurement("a decision", decided, "bytes", f"{runs * RETRIEVES_PER_RUN:,} retrieves"),
        *(Measurement(name, taken, "bytes", "indexes included; a fixed aim", aim) for (name, aim), taken in in_all),
    ]


async def _compact_sizes(owner: asyncpg.Connection) -> dict[str, tuple[int, int]]:
    """Returns the bytes of each table and of its indexes, rewritten so that no dead row counts."""
    names = [table.name for table in USER_TABLES]
    await owner.execute("VACUUM FULL")
    return {row["name"]: (row["heap"], row["indexes"]) for row in await owner.fetch(_SIZES, names)}


async def _work(database: Database, runs: int) -> None:
    """Retains the runs, has a worker make cases of them, and asks once for each."""
    embedder, keyring = WordLlamaEmbedder(), Keyring(os.urandom(32), seals_words=True)
    authors = [Author(f"user-{number}", "bench", datetime.now(UTC)) for number in range(USERS)]
    for number, run in enumerate(synthetic(runs)):
        await retain(database, keyring, run, authors[number % USERS])
    worker = Worker(database, embedder, keyring)
    while await worker.run_once():
        pass
    reader = Reader(database, embedder, seals=keyring)
    for number, query in enumerate(tasks(8, runs * RETRIEVES_PER_RUN)):
        author = authors[number % USERS]
        await reader.retrieve(author.user_sub, author.authorised_at, Question(CaseSearch(AGENT, query)))


def synthetic(count: int) -> Iterator[FinishedRun]:
    """Yields runs of three calls with a page of output, the same ones each time; each fourth overcame a failure."""
    for number, task in enumerate(tasks(7, count)):
        statement = f"ALTER TABLE t{number} ADD COLUMN c{number}"
        page = "\n".join(f"row {line} of {task}" for line in range(10))
        calls = [
            {"tool": "look", "input": {"table": f"t{number}"}, "output": page, "duration_ms": 3},
            {"tool": "sql", "input": {"statement": f"{statement} text;"}, "output": "ALTER TABLE", "duration_ms": 9},
            {"tool": "check", "input": {"column": f"c{number}"}, "output": "1 row", "duration_ms": 2},
        ]
        if number % 4 == 0:
            failed = {"tool": "sql", "input": {"statement": f"{statement};"}, "output": 'syntax error at or near ";"'}
            calls.insert(1, {**failed, "status": "error", "duration_ms": 4})
        yield FinishedRun.model_validate(
            {
                "agent": AGENT,
                "task": task,
                "plan": ["look", f"change t{number}", "check"],
                "outcome": "success",
                "tool_traces": calls,
                "prompt_snapshot": "Be careful with tables.",
            }
        )
