"""Jobs: periodic work of a service beside its requests, which goes on after failures."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client import Counter, Gauge

from app.jobs.records import JobRecords
from retrieval.database.rest import Rest
from retrieval.tasks import is_cancelled
from retrieval.telemetry import log

FAILURES = Counter("casebank_job_failures_total", "Runs of a background job that ended with an error", ["job"])
LAST_SUCCESS = Gauge(
    "casebank_job_last_success_timestamp_seconds",
    "Unix time at which a background job last succeeded",
    ["job"],
    multiprocess_mode="max",
)

DAY_S = 86_400.0
LONGEST_RUN_S = 4 * 3600.0
"""Longest time in seconds for which a run without an end keeps other processes from a job; its process may be dead."""
RARE_S = 60.0
"""Period in seconds from which a job logs each success; a more frequent job logs only the first after a failure."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits after failures: ``first_s`` after one, doubled with each further one in a row, up to ``last_s``."""

    first_s: float = 60.0
    last_s: float = 3600.0

    def after_s(self, failures: int) -> float:
        """Returns the seconds to wait after this number of failures in a row, at least 1."""
        return min(self.last_s, self.first_s * 2.0 ** min(failures - 1, 50))


@dataclass(slots=True)
class Job:
    """Periodic work of a process.

    Attributes:
        name: name in the log, the metrics and the database.
        every_s: seconds from one success to the next run.
        records: records of the job's runs in the database; None: the job concerns this process alone.
        is_shared: true if a run in one of the processes on the database is a run for all of them.
        backoff: waits after failures, each at most a period.
        failures: failures in a row, in this process.
        rest: state of the process, awake or at rest: it has work only after a use; None: the work needs no database.
        settles_s: seconds after the last use of the process during which more work may appear.
    """

    name: str
    every_s: float
    work: Callable[[], Awaitable[None]]
    records: JobRecords | None = None
    backoff: Backoff = Backoff()
    failures: int = 0
    rest: Rest | None = None
    settles_s: float = 0.0
    is_shared: bool = False
    _began_at: float = -math.inf
    """Time of the last run's begin in this process, or of finding another process's, by the event loop's clock."""

    async def run(self) -> None:
        """Does the work whenever it is due, until cancelled; logs and counts a failure, and tries again later.

        Raises:
            BaseException: the work raised it when it was cancelled.
        """
        FAILURES.labels(self.name)  # so that the metric is there before the first failure
        apart = timedelta(seconds=min(self.every_s / 2, LONGEST_RUN_S) if self.is_shared else 0)
        while True:
            try:
                await self._until_due()
                async with self._at_work():
                    self._began_at = asyncio.get_running_loop().time()
                    if self.records is not None and not await self.records.started(self.name, apart):
                        self.failures = 0
                        continue  # another process does the work, or did it during the wait
                    await self.work()
                    if self.records is not None:
                        await self.records.succeeded(self.name)
                LAST_SUCCESS.labels(self.name).set(time.time())
                if self.failures or self.every_s >= RARE_S:
                    log.info("job.succeeded", job=self.name, after_failures=self.failures)
                self.failures = 0
            except (Exception, asyncio.CancelledError) as error:
                if is_cancelled():  # also where the work turned the cancellation into an error of its own
                    raise
                await self._failed(type(error).__name__)

    def _at_work(self) -> AbstractAsyncContextManager[None]:
        """Returns the block in which the process does not begin to rest."""
        return nullcontext() if self.rest is None else self.rest.work()

    async def _until_due(self) -> None:
        """Waits until the work is due: a period after its last run, unless no change is possible since then.

        Without a use of the process since the last run, it is due once a day. In a rest, where it would wake the
        database, it waits until its work has settled; after one, until the process has.
        """
        rest = self.rest
        async with self._at_work():
            wait_s = await self._wait_s()
        if rest is None or self.failures:
            await asyncio.sleep(wait_s)
            return
        period_ends_at = asyncio.get_running_loop().time() + wait_s

        def due_at() -> float:
            settled_at = rest.used_at + self.settles_s
            if settled_at <= self._began_at:
                return self._began_at + max(self.every_s, DAY_S)
            if rest.at_rest:
                return max(period_ends_at, settled_at)
            return max(period_ends_at, rest.woke_at + min(self.every_s, self.backoff.first_s))

        await rest.until(due_at)

    async def _wait_s(self) -> float:
        """Returns the seconds until the next run.

        Work is due a period after its last success, which may have been an earlier process's: daily work gets done
        although the service starts anew every day. Overdue work waits until a start has settled.
        """
        if self.failures:
            return min(self.every_s, self.backoff.after_s(self.failures))
        if self.records is None:
            return self.every_s
        age_s = (await self.records.of(self.name)).age.total_seconds()
        return min(self.every_s, max(self.every_s - age_s, self.backoff.first_s))

    async def _failed(self, error: str) -> None:
        self.failures += 1
        FAILURES.labels(self.name).inc()
        log.error("job.failed", job=self.name, error=error, in_a_row=self.failures)  # not its message: that may quote
        if self.records is not None:
            try:
                async with self._at_work():
                    await self.records.failed(self.name, error)
            except Exception as unrecorded:
                if is_cancelled():
                    raise
                log.warning("job.unrecorded", job=self.name, error=type(unrecorded).__name__)


@asynccontextmanager
async def beside(jobs: Iterable[Callable[[], Awaitable[None]]]) -> AsyncIterator[None]:
    """Runs endless functions beside the block and cancels them after it; an error in one does not stop the others."""
    tasks = [asyncio.ensure_future(job()) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                log.error("job.ended", error=type(ended).__name__)
