"""The jobs of a service: upkeep of the banks, training, seals of the audit, and a watch over its own Postgres."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial

from app import postgres
from app.jobs.jobs import DAY_S, Job
from app.jobs.metrics import refresh
from app.jobs.records import JobRecord, JobRecords
from app.runtime import Runtime
from app.settings import Settings
from app.training.processes import Trainings
from retrieval.telemetry import log
from writer.audit.sealing import seal_all
from writer.upkeep.hnsw import index_all
from writer.upkeep.prune import prune_all
from writer.upkeep.silent_runs import abort_all

UPKEEP, TRAINING, POSTGRES, WORKER, AUDIT = "upkeep", "training", "postgres", "worker", "audit"
NUMBERS, QUEUE = "numbers", "queue"
REVIVE_EVERY_S = 1.0
LOOK_EVERY_S = 1.0
SEAL_EVERY_S = 60.0
"""Seconds between two seals of the audit's chains; a seal costs little, and a change in between is only found later."""
SIGN_EVERY_S = 15.0
"""Seconds between two signs of life of a worker in the database."""
SILENCE = 4 * timedelta(seconds=SIGN_EVERY_S)
"""Time since its last sign of life after which a worker counts as dead."""
GRACE = timedelta(minutes=10)
"""Time after two of its periods from which a job without a success counts as late."""
STUCK_AFTER_S = 600.0
"""Seconds without a look at the queue after which a worker is stuck; a language model may read a run."""


class WorkerStuck(Exception):
    """The worker has not looked at the queue for too long."""


def periods(settings: Settings) -> Mapping[str, timedelta]:
    """Returns the period of each job with a record in the database, without those that are switched off."""
    every_s = {UPKEEP: settings.upkeep_every_s, TRAINING: settings.train_every_s}
    return {name: timedelta(seconds=seconds) for name, seconds in every_s.items() if seconds}


def is_well(record: JobRecord, every: timedelta) -> bool:
    """Returns whether the last run of a job with this period succeeded, and that not too long ago.

    Too long are ten minutes more than two periods, or than a period and a day if that is longer, because an unused
    process runs its jobs once a day.
    """
    return record.last_error is None and record.age <= max(2 * every, every + timedelta(seconds=DAY_S)) + GRACE


def jobs_of(runtime: Runtime, trainings: Trainings) -> list[Job]:
    """Returns the jobs of a service."""
    settings, rest, records = runtime.settings, runtime.rest, JobRecords(runtime.database)
    in_turn = partial(Job, records=records, rest=rest, is_shared=True)
    jobs = [in_turn(UPKEEP, settings.upkeep_every_s, partial(upkeep, runtime), settles_s=settings.run_silent_s)]
    if settings.train_every_s:
        jobs.append(in_turn(TRAINING, settings.train_every_s, trainings.train_all))
    jobs.append(Job(AUDIT, SEAL_EVERY_S, partial(seal_audit, runtime), rest=rest))
    if settings.limits.pending or settings.limits.user_pending:
        jobs.append(Job(QUEUE, LOOK_EVERY_S, runtime.admission.backlog.look, rest=rest))
    return [*jobs, *_postgres_job(runtime)]


def sign_of_life(runtime: Runtime) -> Job:
    """Returns the job that records the worker's sign of life while there is work; it fails while it is stuck."""

    async def look() -> None:
        looked_at = runtime.worker.looked_at
        if looked_at is None or time.monotonic() - looked_at > STUCK_AFTER_S:
            raise WorkerStuck

    return Job(WORKER, SIGN_EVERY_S, look, JobRecords(runtime.database), rest=runtime.rest)


def worker_jobs(runtime: Runtime) -> list[Job]:
    """Returns the jobs of a process that is a worker alone: its sign of life, and its metrics."""
    numbers = Job(NUMBERS, SIGN_EVERY_S, partial(refresh, runtime.database), rest=runtime.rest)
    return [sign_of_life(runtime), numbers, *_postgres_job(runtime)]


def _postgres_job(runtime: Runtime) -> list[Job]:
    """Returns the watch over the embedded Postgres; an empty list with another database."""
    if runtime.settings.database_url is not None:
        return []
    return [Job(POSTGRES, REVIVE_EVERY_S, partial(keep_postgres, runtime))]


async def upkeep(runtime: Runtime) -> None:
    """Prunes every profile, indexes the vectors of very large banks, and aborts silent runs.

    Raises:
        Exception: a part failed, in a profile or as a whole; the other parts were done.
    """
    database, settings = runtime.database, runtime.settings
    kept, silent_for = timedelta(days=settings.pruned_kept_days), timedelta(seconds=settings.run_silent_s)
    parts: dict[str, Callable[[], Awaitable[object]]] = {
        "pruned": partial(prune_all, database, kept=kept),
        "indexed": partial(index_all, database),
        "runs_aborted": partial(abort_all, database, runtime.keyring, silent_for=silent_for),
    }
    failed: Exception | None = None
    done: dict[str, object] = {}
    for name, part in parts.items():
        try:
            done[name] = await part()
        except Exception as error:  # noqa: BLE001 - it is raised once the other parts were done
            failed = failed or error
    log.info("upkeep.pruned", **done)
    if failed is not None:
        raise failed


class AuditChanged(Exception):
    """The audit was changed from outside of casebank."""


async def seal_audit(runtime: Runtime) -> None:
    """Seals the new entries of the audit's chains; a chain that was changed is left alone.

    Raises:
        AuditChanged: a chain was changed; `casebank audit verify --all` names it.
    """
    done = await seal_all(runtime.database)
    log.debug("audit.sealed", chains=done.sealed)
    if done.broken or done.tombstones.fault is not None:
        log.error("audit.changed", chains=len(done.broken), erasures=done.tombstones.fault is not None)
        raise AuditChanged


async def keep_postgres(runtime: Runtime) -> None:
    """Starts the embedded Postgres again if it died; one that recovers, or has no free connection, is left alone.

    Raises:
        EmbeddedPostgresFailed: Postgres does not start.
    """
    if not await asyncio.to_thread(postgres.is_dead, runtime.settings.home):
        return
    try:
        await asyncio.to_thread(postgres.start, runtime.settings.home)
    except postgres.EmbeddedPostgresFailed as error:
        log.error("postgres.start_failed", detail=str(error)[:500])
        raise
