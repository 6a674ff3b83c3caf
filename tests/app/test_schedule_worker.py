"""A worker that works gives signs of life, and one that is stuck does not."""

import time

import pytest

from app.schedule import STUCK_AFTER_S, WorkerStuck, sign_of_life
from tests.app.conftest import Service


async def test_a_worker_that_looks_at_the_queue_gives_a_sign(service: Service):
    await sign_of_life(service.runtime).work()


@pytest.mark.parametrize("looked_at", [None, time.monotonic() - STUCK_AFTER_S - 1])
async def test_a_worker_that_does_not_gives_none(service: Service, looked_at: float | None):
    job = sign_of_life(service.runtime)
    worker = service.runtime.worker
    kept, worker.looked_at = worker.looked_at, looked_at
    with pytest.raises(WorkerStuck):
        await job.work()
    worker.looked_at = kept
