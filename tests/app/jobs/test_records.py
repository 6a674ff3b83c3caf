"""What the database remembers of a job."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from app.jobs.records import JobRecords, all_records
from app.postgres.pools import service_database


@pytest.fixture(scope="module")
async def records(database_url: str) -> AsyncIterator[JobRecords]:
    async with service_database(database_url) as database:
        yield JobRecords(database)


async def test_a_job_that_never_ran_is_as_old_as_it_is_known(records: JobRecords):
    known = await records.of("new")
    assert (known.since_success, known.failures, known.last_error) == (None, 0, None)
    later = await records.of("new")
    assert timedelta() < known.age < later.age < timedelta(minutes=1)


async def test_failures_are_counted_from_the_last_success_on(records: JobRecords):
    await records.of("counted")
    await records.started("counted")
    for error in ("KeyError", "OSError"):
        await records.failed("counted", error)
    failed = await records.of("counted")
    assert (failed.since_success, failed.failures, failed.last_error) == (None, 2, "OSError")
    await records.succeeded("counted")
    well = await records.of("counted")
    assert (well.failures, well.last_error) == (0, None)
    assert well.since_success is not None
    assert well.age == well.since_success < well.known_for


async def test_every_job_is_listed_by_name(records: JobRecords):
    for name in ("z-listed", "a-listed"):
        await records.of(name)
    async with records.database.as_worker() as connection:
        names = [record.name for record in await all_records(connection)]
    assert names == sorted(names)
    assert {"z-listed", "a-listed"} <= set(names)


async def test_what_a_job_did_is_remembered_though_nobody_had_asked_for_its_record_before(records: JobRecords):
    await records.succeeded("unasked")
    assert (await records.of("unasked")).since_success is not None
