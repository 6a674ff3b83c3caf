"""A bank of real agents' runs, with the procedures learned from them, beside the synthetic one of ``bench.bank``."""

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import orjson

from app.postgres.pools import ANY_LENGTH, service_database
from app.providers.wordllama import WordLlamaEmbedder
from bench.advice import DOMAINS
from bench.bank import Bank, empty, endless, settings_of
from bench.measure import Measurement
from retrieval.retrieve import Reader
from writer.author import Author
from writer.messages import Turn
from writer.privacy.keys import Keyring
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.run import FinishedRun, ToolTrace

AGENT = "clerk"
RUNS, USERS, QUERIES = 600, 6, 300
SKIPPED = "its data is not on this machine; --data or CASEBANK_DATA names it"


def skipped(name: str) -> Measurement:
    """Returns the row that stands in place of a measurement without its data."""
    return Measurement(f"{name}: SKIPPED", float("nan"), "", SKIPPED)


def real_lines(data: Path | None) -> list[Mapping[str, Any]]:
    """Returns the lines of the recorded runs of tau's agents; none without the data."""
    files = [(data or Path()) / "tau" / domain / "runs.jsonl" for domain in DOMAINS]
    return [orjson.loads(line) for file in files if file.is_file() for line in file.read_bytes().splitlines()]


def real_runs(data: Path | None) -> Iterator[FinishedRun]:
    """Yields the recorded runs of tau's agents, with their calls and turns; none without the data."""
    yield from map(real_run, real_lines(data))


def real_run(row: Mapping[str, Any]) -> FinishedRun:
    """Returns the recorded run of a line of ``runs.jsonl``."""
    traces = [
        ToolTrace(
            tool=step["tool"],
            input=step["input"],
            output=step["output"],
            status="error" if step["error"] else "ok",
        )
        for step in row["steps"]
    ]
    return FinishedRun(
        agent=AGENT,
        task=row["task_text"][:20_000] or "nothing was said",
        tool_traces=traces,
        turns=[Turn(role="user", content=text) for text in row["user_turns"]],
        outcome="success" if row["reward"] == 1 else "failure",
    )


@asynccontextmanager
async def remembered(
    home: Path, data: Path | None, *, users: int = USERS, count: int = RUNS
) -> AsyncIterator[Bank | None]:
    """Yields a bank of recorded runs, each kept and made ready as a service does, and queries of further runs.

    The runs are dealt out to the users in turn, their words are sealed, and what is learned from them is learned. None
    without the data.
    """
    runs = list(real_runs(data))
    if not runs:
        yield None
        return
    step = max(1, len(runs) // (count + QUERIES))  # from all over the recording
    kept, queries = runs[::step][:count], [run.task for run in runs[::step][count:][:QUERIES]]
    url = await empty(home, f"bench_real_{users}")
    keyring, embedder = Keyring(os.urandom(32), seals_words=True), WordLlamaEmbedder()
    bare = await asyncpg.connect(url.replace("+asyncpg", ""), server_settings={"jit": "off"}, **ANY_LENGTH)
    try:
        async with service_database(url) as database:
            worker = Worker(database, embedder, keyring)
            for number, run in enumerate(kept):
                user = f"user-{number % users + 1}"
                await retain(database, keyring, run, Author(user, user, datetime.now(UTC)))
            while await worker.run_once():
                pass
            await bare.execute("VACUUM ANALYZE")
            reader = Reader(database, embedder, explore=True, seals=keyring)
            settings = settings_of(home, url, keyring.master)
            now = datetime.now(UTC)
            yield Bank(url, reader, bare, users, now, endless(database), settings, home, kept[0].agent, queries)
    finally:
        await bare.close()
