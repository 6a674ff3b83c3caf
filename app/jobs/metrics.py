"""Metrics that are read from the database, and a worker's own page of metrics."""

import os
import time
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client import REGISTRY, CollectorRegistry, Gauge, generate_latest, multiprocess, start_http_server
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.edge.server import METRICS_FOLDER
from app.jobs.jobs import LAST_SUCCESS
from app.jobs.records import JobRecord, all_records
from retrieval.database.database import Database
from retrieval.tables.metadata import metadata
from retrieval.tables.procedures import reflections
from retrieval.telemetry import log
from writer.queue.statements import depth

QUEUE = Gauge("casebank_queue_cases", "Cases that are not in the bank yet", ["status"], multiprocess_mode="mostrecent")
OLDEST = Gauge(
    "casebank_queue_oldest_seconds",
    "How long the case that waits longest has waited; 0: none waits",
    multiprocess_mode="mostrecent",
)
TABLE = Gauge(
    "casebank_table_bytes",
    "Size of a table with its indexes and what is stored apart",
    ["table"],
    multiprocess_mode="mostrecent",
)

WAITING = ("pending", "dead", "lessons_pending", "lessons_dead")

_SIZES = text(
    "SELECT relname, pg_total_relation_size(oid) AS bytes FROM pg_class"
    " WHERE relnamespace = 'public'::regnamespace AND relname = ANY(:names)",
)


@dataclass(frozen=True, slots=True)
class State:
    """State of the queue and the jobs in the database: cases by status, age of the oldest pending case, job records.

    Attributes:
        cases: also ``lessons_pending`` and ``lessons_dead``: findable cases from which the worker has still to learn.
    """

    cases: dict[str, int]
    oldest: timedelta
    jobs: list[JobRecord]


async def state(database: Database) -> State:
    """Returns the state of the queue and the jobs.

    Raises:
        DatabaseUnavailable: it does not answer.
    """
    async with database.as_worker() as connection:
        now = await connection.scalar(text("SELECT clock_timestamp()"))
        rows = {row.status: row for row in await connection.execute(depth())}
        oldest = now - rows["pending"].oldest if "pending" in rows else timedelta()
        waiting = {status: row.rows for status, row in rows.items()}
        waiting |= {f"lessons_{row.status}": row.rows for row in await connection.execute(depth(reflections))}
        return State(waiting, oldest, await all_records(connection))


async def refresh(database: Database) -> None:
    """Sets the gauges by the database.

    Raises:
        DatabaseUnavailable: the gauges stay as they were.
    """
    current = await state(database)
    async with database.as_worker() as connection:
        sizes = await table_sizes(connection)
    for job in current.jobs:  # it may have run in another process
        if job.since_success is not None:
            LAST_SUCCESS.labels(job.name).set(time.time() - job.since_success.total_seconds())
    for status in WAITING:
        QUEUE.labels(status).set(current.cases.get(status, 0))
    OLDEST.set(current.oldest.total_seconds())
    for name, size in sizes:
        TABLE.labels(name).set(size)


async def table_sizes(connection: AsyncConnection) -> list[tuple[str, int]]:
    """Returns the bytes of each table with its indexes and large values, the largest first."""
    rows = await connection.execute(_SIZES, {"names": list(metadata.tables)})
    return sorted(((row.relname, row.bytes) for row in rows), key=lambda each: -each[1])


def exposition() -> bytes:
    """Returns all metrics in the Prometheus text format: of this process, or of all that share its socket together."""
    if METRICS_FOLDER not in os.environ:
        return generate_latest(REGISTRY)
    together = CollectorRegistry()
    multiprocess.MultiProcessCollector(together)  # type: ignore[no-untyped-call]
    return generate_latest(together)


def serve_alone(port: int) -> None:
    """Serves this process's metrics on the loopback address, until it ends; a taken port is only logged."""
    try:
        start_http_server(port, "127.0.0.1")
    except OSError as error:
        log.warning("metrics.not_served", port=port, error=type(error).__name__)
    else:
        log.info("metrics.served", port=port)
