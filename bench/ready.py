"""Cost of making real runs findable: cases a second, processor time and statements of the worker for a case.

The runs are those of tau's agents, with their tool calls. A number of users retain them; then one worker in this
process makes them ready, while a profile, or a count of statements, may be taken.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Sized
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import event

from app.postgres.pools import service_database
from app.providers.wordllama import WordLlamaEmbedder
from bench.bank import DatabaseServer, empty
from bench.measure import Measurement, p50
from bench.real import real_runs, skipped
from retrieval.database.database import Database
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.run import FinishedRun

RUNS, USERS = 600, 20
ALONE = 20
"""Runs that are retained when the worker is idle, to measure how long one waits."""
_FIRST_WORDS = re.compile(r"\s+")


async def ready(home: Path, data: Path | None) -> list[Measurement]:
    """Measures how fast a worker makes the retained runs of real agents ready, and the cost of each."""
    runs = list(real_runs(data))
    if not runs:
        return [skipped("ready")]
    url = await empty(home, "bench_ready")
    async with service_database(url) as database:
        worker = Worker(database, WordLlamaEmbedder(), Keyring(os.urandom(32), seals_words=True))
        await _keep(worker, runs[:USERS])
        await _drain(worker)  # makes profiles and keys, and loads the embedder
        await _keep(worker, runs[USERS : USERS + RUNS])
        statements = _Statements(database)
        server = DatabaseServer(home)
        began, own, theirs = time.perf_counter(), time.process_time(), server.seconds()
        while await worker.cases.queue.serve(worker.pace.batch, worker.cases.handle):
            pass
        found = time.perf_counter() - began
        await _drain(worker)
        seconds = time.perf_counter() - began
        own, theirs = time.process_time() - own, server.seconds() - theirs
        statements.stop()
        alone = [await _alone(worker, run) for run in runs[USERS + RUNS :][:ALONE]]
    count = len(runs[USERS : USERS + RUNS])
    parts = f"own {own / count * 1e3:.1f} + database {theirs / count * 1e3:.1f} ms"
    detail = f"{count} runs of real agents, {USERS} users; {parts}"
    most = ", ".join(f"{name} {number / count:.2f}" for name, number in statements.executed.most_common(6))
    return [
        Measurement("cases made ready", count / found, "/s", "one worker, lessons after", aim=160, at_least=True),
        Measurement("cases learned from", count / seconds, "/s", "from the first case on", aim=160, at_least=True),
        Measurement("processor of the worker a case", (own + theirs) / count * 1e3, "ms", detail, aim=8),
        Measurement("statements sent by the worker a case", statements.sent / count, "", "", aim=6),
        Measurement("statements executed for the worker a case", statements.executed.total() / count, "", most, aim=6),
        Measurement("write to findable, idle before", p50(alone), "ms", f"p50 of {len(alone)}", aim=50),
    ]


async def _keep(worker: Worker, runs: list[FinishedRun]) -> None:
    """Retains the runs, each by the next of USERS users."""
    for number, run in enumerate(runs):
        user = f"user-{number % USERS}"
        await retain(worker.database, worker.keyring, run, Author(user, user, datetime.now(UTC)))


async def _drain(worker: Worker) -> None:
    while await worker.run_once():
        pass


async def _alone(worker: Worker, run: FinishedRun) -> float:
    """Returns the milliseconds from the start of a retain until its case can be found; then learns its lessons."""
    began = time.perf_counter()
    await _keep(worker, [run])
    await worker.cases.queue.serve(worker.pace.batch, worker.cases.handle)
    found = time.perf_counter() - began
    await _drain(worker)
    return found * 1e3


class _Statements:
    """A count of the worker's statements, without BEGIN and COMMIT.

    Attributes:
        sent: number of statements; one that is sent with the values of many rows counts once.
        executed: executions by Postgres, one for each row of such a statement, by the statement's first words.
    """

    def __init__(self, database: Database) -> None:
        self.sent, self.executed = 0, Counter[str]()
        self._engine = database.engine.sync_engine
        event.listen(self._engine, "before_cursor_execute", self._count)

    def _count(self, _connection: object, _cursor: object, statement: str, parameters: Sized, *context: object) -> None:
        self.sent += 1
        self.executed[_FIRST_WORDS.sub(" ", statement)[:40]] += len(parameters) if context[-1] else 1

    def stop(self) -> None:
        """Counts no further."""
        event.remove(self._engine, "before_cursor_execute", self._count)
