"""Jobs: done whenever they are due, tried again after any failure, and stopped at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from uuid import uuid4

import asyncpg
import pytest
from prometheus_client import REGISTRY
from sqlalchemy import event
from structlog.testing import capture_logs

from app.jobs.jobs import Backoff, Job, beside
from app.jobs.records import JobRecords
from app.postgres.pools import dsn, service_database

SOON = Backoff(first_s=0.01, last_s=0.02)
ENOUGH_S = 60.0
BEGINS = "UPDATE jobs SET last_started"


@pytest.fixture(scope="module")
async def records(database_url: str) -> AsyncIterator[JobRecords]:
    async with service_database(database_url) as database:
        yield JobRecords(database)


@pytest.fixture
def name() -> str:
    return f"job-{uuid4()}"


@dataclass
class Work:
    """Work that fails as often as it is told to."""

    fails: int = 0
    error: type[BaseException] = KeyError
    done: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> None:
        self.changed.set()
        if self.fails:
            self.fails -= 1
            raise self.error("what a user wrote")
        self.done += 1

    async def until(self, done: int) -> None:
        async with asyncio.timeout(ENOUGH_S):
            while self.done < done:
                self.changed.clear()
                await self.changed.wait()


async def as_owner(database_url: str, statement: str, *values: str) -> None:
    owner = await asyncpg.connect(dsn(database_url))
    await owner.execute(statement, *values)
    await owner.close()


async def overdue(records: JobRecords, name: str, database_url: str) -> None:
    """Makes a record of a job that has not succeeded for two hours."""
    await records.of(name)
    await as_owner(database_url, "UPDATE jobs SET created_at = now() - interval '2 hours' WHERE name = $1", name)


async def remembered(records: JobRecords, name: str, enough: Callable[[int], bool]) -> None:
    """Waits until the recorded number of failures in a row is enough."""
    async with asyncio.timeout(ENOUGH_S):
        while not enough((await records.of(name)).failures):  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)


def metric(metric_name: str, job: str) -> float | None:
    return REGISTRY.get_sample_value(metric_name, {"job": job})


async def test_work_is_done_again_and_again(name: str):
    work = Work()
    async with beside([Job(name, 0.01, work).run]):
        await work.until(done=3)


async def test_work_that_fails_is_tried_again_logged_without_its_words_and_counted(name: str):
    work = Work(fails=3)
    with capture_logs() as logged:
        async with beside([Job(name, 0.01, work).run]):
            await work.until(done=1)
    failed = [event for event in logged if event["event"] == "job.failed"]
    assert [(event["job"], event["error"], event["in_a_row"]) for event in failed] == [
        (name, "KeyError", number) for number in (1, 2, 3)
    ]
    assert "what a user wrote" not in str(logged)
    assert metric("casebank_job_failures_total", name) == 3


async def test_a_cancellation_that_nobody_asked_the_job_for_is_a_failure_like_any_other(name: str):
    work = Work(fails=2, error=asyncio.CancelledError)
    with capture_logs() as logged:
        async with beside([Job(name, 0.01, work).run]):
            await work.until(done=1)
    assert [event["error"] for event in logged if event["event"] == "job.failed"] == ["CancelledError"] * 2


async def test_the_number_of_failures_is_known_before_the_first_and_the_last_success_after_it(name: str):
    work = Work()
    async with beside([Job(name, 0.05, work).run]):
        await asyncio.sleep(0)
        assert metric("casebank_job_failures_total", name) == 0
        assert metric("casebank_job_last_success_timestamp_seconds", name) is None
        await work.until(done=2)
    assert metric("casebank_job_last_success_timestamp_seconds", name) > 1e9


def test_the_wait_after_failures_doubles_up_to_a_limit():
    waits = [Backoff(first_s=60, last_s=3600).after_s(failures) for failures in (1, 2, 3, 7, 8, 10_000)]
    assert waits == [60, 120, 240, 3600, 3600, 3600]


async def test_the_database_remembers_success_and_failure(records: JobRecords, name: str):
    work = Work(fails=2)
    async with beside([Job(name, 0.02, work, records, SOON).run]):
        await work.until(done=1)
        await remembered(records, name, lambda failures: failures == 0)
    record = await records.of(name)
    assert record.since_success is not None
    assert record.last_error is None


async def test_the_type_of_the_last_error_is_remembered(records: JobRecords, name: str):
    async with beside([Job(name, 30, Work(fails=99), records, SOON).run]):
        pass  # never due: it has been known for no time
    assert (await records.of(name)).last_error is None
    async with beside([Job(name, 0.02, Work(fails=99), records, SOON).run]):
        await remembered(records, name, lambda failures: failures >= 2)
    assert (await records.of(name)).last_error == "KeyError"


async def test_work_that_is_overdue_since_before_the_start_is_done_soon_and_other_work_is_not(
    records: JobRecords, name: str, database_url: str
):
    await overdue(records, name, database_url)
    old, new = Work(), Work()
    jobs = [Job(each, 3600.0, work, records, SOON) for each, work in ((name, old), (f"{name}-new", new))]
    async with beside([job.run for job in jobs]):
        await old.until(done=1)
    assert new.done == 0


async def test_work_for_all_processes_is_done_by_one_of_them(records: JobRecords, name: str, database_url: str):
    await overdue(records, name, database_url)
    working, go = asyncio.Event(), asyncio.Event()
    begun: list[int] = []

    async def work(process: int) -> None:
        begun.append(process)
        working.set()
        await go.wait()

    begins: list[str] = []
    engine = records.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _c, _u, sql, *_: begins.append(sql) if BEGINS in sql else None)
    jobs = [Job(name, 3600.0, partial(work, process), records, SOON, is_shared=True) for process in range(3)]
    async with beside([job.run for job in jobs]), asyncio.timeout(ENOUGH_S):
        await working.wait()
        while len(begins) < 12:  # the others look again and again  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)
        go.set()
        while (await records.of(name)).since_success is None:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        assert len(begun) == 1
        assert not await records.started(name, timedelta(minutes=30))


async def test_work_for_all_processes_that_failed_or_died_with_its_process_is_done_by_another(
    records: JobRecords, name: str, database_url: str
):
    await overdue(records, name, database_url)
    assert await records.started(name, timedelta(minutes=30))  # and dies
    assert not await records.started(name, timedelta(minutes=30))
    await records.failed(name, "KeyError")
    assert await records.started(name, timedelta(minutes=30))
    await as_owner(database_url, "UPDATE jobs SET last_started = now() - interval '31 minutes' WHERE name = $1", name)
    work = Work()
    async with beside([Job(name, 3600.0, work, records, SOON, is_shared=True).run]):
        await work.until(done=1)


async def test_work_begins_although_the_databases_clock_was_put_back_since_the_last_run(
    records: JobRecords, name: str, database_url: str
):
    await records.of(name)
    ahead = "UPDATE jobs SET last_started = now() + interval '1 year', last_succeeded = now() + interval '1 year'"
    await as_owner(database_url, f"{ahead} WHERE name = $1", name)
    assert await records.started(name, timedelta(minutes=30))
    assert not await records.started(name, timedelta(minutes=30))


async def test_a_database_that_is_away_ends_no_job(name: str):
    work = Work()
    async with (
        service_database("postgresql://127.0.0.1:1/nowhere", timeout_s=0.5) as database,
        asyncio.timeout(ENOUGH_S),
        beside([Job(name, 0.01, work, JobRecords(database), SOON).run]),
    ):
        while metric("casebank_job_failures_total", name) != 2:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
    assert work.done == 0


async def stuck() -> None:
    """Turns its cancellation into an error, as some database drivers do."""
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        raise RuntimeError("the connection was closed") from None


async def failing() -> None:
    raise KeyError


@pytest.mark.parametrize("work", [stuck, failing, Work()])
async def test_no_job_keeps_the_service_from_stopping(name: str, work: Callable[[], Awaitable[None]]):
    async with asyncio.timeout(ENOUGH_S), beside([Job(name, 0.01, work).run]):
        await asyncio.sleep(0.05)


async def test_what_ended_beside_the_block_is_logged_when_the_block_ends(name: str):
    with capture_logs() as logged, suppress(ValueError):
        async with beside([failing]):
            await asyncio.sleep(0.01)
            raise ValueError(name)
    assert [(event["event"], event["error"]) for event in logged] == [("job.ended", "KeyError")]
