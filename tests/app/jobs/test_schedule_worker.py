"""A worker that works gives signs of life, and one that is stuck does not."""

import time
from dataclasses import replace

import pytest

from app.jobs.schedule import POSTGRES, STUCK_AFTER_S, WorkerStuck, sign_of_life, worker_jobs
from tests.service import Service


def test_a_worker_alone_also_brings_back_the_embedded_postgres_and_no_other(service: Service):
    embedded = service.settings.model_copy(update={"database_url": None})
    alone = worker_jobs(replace(service.runtime, settings=embedded))
    assert POSTGRES in [job.name for job in alone]
    assert POSTGRES not in [job.name for job in worker_jobs(service.runtime)]


async def test_a_worker_that_looks_at_the_queue_gives_a_sign(service: Service):
    await sign_of_life(service.runtime).work()


@pytest.mark.parametrize("looked_at", [None, time.monotonic() - STUCK_AFTER_S - 1], ids=["never", "too long ago"])
async def test_a_worker_that_does_not_gives_none(service: Service, looked_at: float | None):
    job = sign_of_life(service.runtime)
    worker = service.runtime.worker
    kept, worker.looked_at = worker.looked_at, looked_at
    with pytest.raises(WorkerStuck):
        await job.work()
    worker.looked_at = kept
