"""What the service does by the clock: upkeep of the banks, training, and a watch over its own Postgres."""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from app import postgres
from app.job_records import JobRecords
from app.jobs import Job
from app.runtime import Runtime
from app.settings import Settings
from app.training.processes import Trainings
from retrieval.errors import DatabaseUnavailable
from retrieval.telemetry import log
from writer.upkeep.hnsw import index_all
from writer.upkeep.prune import prune_all
from writer.worker.worker import Worker

UPKEEP, TRAINING, POSTGRES, WORKER = "upkeep", "training", "postgres", "worker"
REVIVE_EVERY_S = 1.0
SIGN_EVERY_S = 15.0
"""How often a worker lets the database know that it works."""
STUCK_AFTER_S = 600.0
"""For how long one batch may take: a language model may read every run of it."""


class WorkerStuck(Exception):
    """The worker has not looked at the queue for long."""


def periods(settings: Settings) -> Mapping[str, timedelta]:
    """Returns how often each job runs that the database remembers; one that is switched off is left out."""
    every_s = {UPKEEP: settings.upkeep_every_s, TRAINING: settings.train_every_s}
    return {name: timedelta(seconds=seconds) for name, seconds in every_s.items() if seconds}


def jobs_of(runtime: Runtime, trainings: Trainings) -> list[Job]:
    """Returns the jobs that a service with these settings has."""
    work = {UPKEEP: lambda: upkeep(runtime), TRAINING: trainings.train_all}
    records = JobRecords(runtime.database)
    jobs = [Job(name, every.total_seconds(), work[name], records) for name, every in periods(runtime.settings).items()]
    if runtime.settings.database_url is None:
        jobs.append(Job(POSTGRES, REVIVE_EVERY_S, lambda: keep_postgres(runtime)))
    return jobs


def sign_of_life(runtime: Runtime) -> Job:
    """Returns the job by which others can see that this process's worker works; it fails while the worker is stuck."""
    return Job(WORKER, SIGN_EVERY_S, lambda: _look_at(runtime.worker), JobRecords(runtime.database))


async def _look_at(worker: Worker) -> None:
    if worker.looked_at is None or time.monotonic() - worker.looked_at > STUCK_AFTER_S:
        raise WorkerStuck


async def upkeep(runtime: Runtime) -> None:
    """Prunes every profile, and brings those that became very large into the index."""
    kept = timedelta(days=runtime.settings.pruned_kept_days)
    pruned = await prune_all(runtime.database, now=datetime.now(UTC), kept=kept)
    moved = await index_all(runtime.database)
    log.info("upkeep.pruned", soft=pruned.soft, hard=pruned.hard, indexed=moved)


async def keep_postgres(runtime: Runtime) -> None:
    """Starts the embedded Postgres again if it died; one that recovers, or is full, is left alone and waited for.

    Raises:
        EmbeddedPostgresFailed: it does not start.
    """
    try:
        async with runtime.database.as_worker():  # it answers: far cheaper to ask than a start that finds it up
            return
    except DatabaseUnavailable:
        if not await asyncio.to_thread(postgres.is_dead, runtime.settings.home):
            return
    try:
        await asyncio.to_thread(postgres.start, runtime.settings.home)
    except postgres.EmbeddedPostgresFailed as error:
        log.error("postgres.start_failed", detail=str(error)[:500])
        raise
