"""Records of the background jobs' runs, in the database for other processes and for the next start of this one."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.tables.keys import jobs


@dataclass(frozen=True, slots=True)
class JobRecord:
    """Record of a job; every age is by the database's clock.

    Attributes:
        known_for: age of the record.
        since_success: time since the last success; None: it never succeeded.
        last_error: type of the last run's error; None: that run succeeded, or no run has ended.
    """

    name: str
    known_for: timedelta
    since_success: timedelta | None
    failures: int
    last_error: str | None

    @property
    def age(self) -> timedelta:
        """Returns the time since the last success, or the age of the record of a job that never succeeded."""
        return self.known_for if self.since_success is None else self.since_success


@dataclass(frozen=True, slots=True)
class JobRecords:
    """The records in the database; every method raises DatabaseUnavailable if the database does not answer."""

    database: Database

    async def of(self, name: str) -> JobRecord:
        """Returns the job's record, from which its next run is timed; made now if it is missing."""
        async with self.database.as_worker() as connection:
            await connection.execute(_first_known(name))
            return next(record for record in await all_records(connection) if record.name == name)

    async def started(self, name: str, apart: timedelta = timedelta()) -> bool:
        """Notes that the job begins, and returns True.

        Returns False and notes nothing if the job began, without a failure since, or succeeded less than ``apart`` ago.
        A time in future does not count: the database's clock was put back since.
        """
        long_ago, now = func.now() - apart, func.clock_timestamp()  # later than what a process that went first noted
        times = jobs.c.last_started, jobs.c.last_succeeded
        begins = [or_(time.is_(None), time <= long_ago, time > now) for time in times] if apart else []
        return await self._note(name, *begins, last_started=func.now()) == 1

    async def succeeded(self, name: str) -> None:
        """Notes that the job succeeded."""
        await self._note(name, last_succeeded=func.now(), failures=0, last_error=None)

    async def failed(self, name: str, error: str) -> None:
        """Notes that the job ended with an error of this type."""
        await self._note(name, failures=jobs.c.failures + 1, last_error=error, last_started=None)

    async def _note(self, name: str, *conditions: ColumnElement[bool], **values: object) -> int:
        """Updates the job's record, made now if it is missing, under these conditions; returns 1, or 0 if one fails."""
        async with self.database.as_worker() as connection:
            await connection.execute(_first_known(name))
            record = update(jobs).where(jobs.c.name == name, *conditions).values(values)
            return (await connection.execute(record)).rowcount


async def all_records(connection: AsyncConnection) -> list[JobRecord]:
    """Returns every job's record by name; the connection must be the worker's."""
    now, job = func.clock_timestamp(), jobs.c
    fields = job.name, now - job.created_at, now - job.last_succeeded, job.failures, job.last_error
    return [JobRecord(*row) for row in await connection.execute(select(*fields).order_by(job.name))]


def _first_known(name: str) -> Insert:
    return insert(jobs).values(name=name).on_conflict_do_nothing()
