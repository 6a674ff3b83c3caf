"""What the service does by the clock: upkeep of the banks, training, and a watch over its own Postgres."""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from app import postgres
from app.jobs.jobs import Job
from app.jobs.metrics import refresh
from app.jobs.records import JobRecord, JobRecords
from app.runtime import Runtime
from app.settings import Settings
from app.training.processes import Trainings
from retrieval.errors import DatabaseUnavailable
from retrieval.telemetry import log
from writer.audit.sealing import seal_all
from writer.training.shared_prior import emptied
from writer.upkeep.abandoned import abort_all
from writer.upkeep.hnsw import index_all
from writer.upkeep.prune import prune_all
from writer.worker.worker import Worker

UPKEEP, TRAINING, POSTGRES, WORKER, AUDIT = "upkeep", "training", "postgres", "worker", "audit"
NUMBERS, QUEUE, FLEET = "numbers", "queue", "fleet"
REVIVE_EVERY_S = 1.0
LOOK_EVERY_S = 1.0
SEAL_EVERY_S = 60.0
"""Seconds between two seals of the audit's chains; a seal costs little, and a change in between is only found later."""
FLEET_EVERY_S = 5.0
"""How often a service looks whether an erasure has emptied a fleet's policy."""
SIGN_EVERY_S = 15.0
"""How often a worker lets the database know that it works."""
GRACE = timedelta(minutes=10)
"""What a job may be late beyond two of its periods."""
STUCK_AFTER_S = 600.0
"""For how long one batch may take: a language model may read every run of it."""


class WorkerStuck(Exception):
    """The worker has not looked at the queue for long."""


def periods(settings: Settings) -> Mapping[str, timedelta]:
    """Returns how often each job runs that the database remembers; one that is switched off is left out."""
    every_s = {UPKEEP: settings.upkeep_every_s, TRAINING: settings.train_every_s}
    return {name: timedelta(seconds=seconds) for name, seconds in every_s.items() if seconds}


def is_well(record: JobRecord, every: timedelta) -> bool:
    """Returns whether a job that runs so often ended well when it last did, and is no two periods late."""
    return record.last_error is None and record.age <= 2 * every + GRACE


def jobs_of(runtime: Runtime, trainings: Trainings) -> list[Job]:
    """Returns the jobs that a service with these settings has."""
    work = {UPKEEP: lambda: upkeep(runtime), TRAINING: trainings.train_all}
    records = JobRecords(runtime.database)
    jobs = [Job(name, every.total_seconds(), work[name], records) for name, every in periods(runtime.settings).items()]
    jobs.append(Job(AUDIT, SEAL_EVERY_S, lambda: seal_audit(runtime)))
    if runtime.settings.train_every_s and runtime.settings.fleet != "off":
        jobs.append(Job(FLEET, FLEET_EVERY_S, lambda: refill_fleets(runtime, trainings)))
    if runtime.settings.limits.bounds_queue:
        jobs.append(Job(QUEUE, LOOK_EVERY_S, runtime.admission.backlog.look))
    return jobs + _postgres_job(runtime)


def sign_of_life(runtime: Runtime) -> Job:
    """Returns the job by which others can see that this process's worker works; it fails while the worker is stuck."""
    return Job(WORKER, SIGN_EVERY_S, lambda: _look_at(runtime.worker), JobRecords(runtime.database))


def worker_jobs(runtime: Runtime) -> list[Job]:
    """Returns the jobs of a process that is a worker alone: it lets others see that it works, and keeps the numbers."""
    jobs = [sign_of_life(runtime), Job(NUMBERS, SIGN_EVERY_S, lambda: refresh(runtime.database))]
    return jobs + _postgres_job(runtime)


def _postgres_job(runtime: Runtime) -> list[Job]:
    """The watch over the embedded Postgres, where that is the database."""
    if runtime.settings.database_url is not None:
        return []
    return [Job(POSTGRES, REVIVE_EVERY_S, lambda: keep_postgres(runtime))]


async def _look_at(worker: Worker) -> None:
    if worker.looked_at is None or time.monotonic() - worker.looked_at > STUCK_AFTER_S:
        raise WorkerStuck


async def upkeep(runtime: Runtime) -> None:
    """Prunes every profile, and brings those that became very large into the index."""
    kept = timedelta(days=runtime.settings.pruned_kept_days)
    pruned = await prune_all(runtime.database, now=datetime.now(UTC), kept=kept)
    moved = await index_all(runtime.database)
    silent_for = timedelta(seconds=runtime.settings.run_silent_s)
    aborted = await abort_all(runtime.database, runtime.keyring, silent_for=silent_for)
    log.info("upkeep.pruned", soft=pruned.soft, hard=pruned.hard, indexed=moved, runs_aborted=aborted)


async def refill_fleets(runtime: Runtime, trainings: Trainings) -> None:
    """Has trained again what erasures have emptied of fleets' policies, if anything."""
    async with runtime.database.as_worker() as connection:
        wanting = await emptied(connection)
    if wanting:
        log.info("fleet.emptied", policies=len(wanting))
        await trainings.train_again()


class AuditChanged(Exception):
    """Somebody changed the audit behind casebank's back."""


async def seal_audit(runtime: Runtime) -> None:
    """Seals what the chains of the audit have grown by; a chain that does not hold is left as it is.

    Raises:
        AuditChanged: one does not hold; `casebank audit verify --all` names it.
    """
    done = await seal_all(runtime.database)
    log.debug("audit.sealed", chains=done.sealed)
    if done.broken or done.tombstones.fault is not None:
        log.error("audit.changed", chains=len(done.broken), erasures=done.tombstones.fault is not None)
        raise AuditChanged


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
