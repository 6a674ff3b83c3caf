"""What the service does by the clock: it keeps to the settings, and goes on after a failure."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from app.jobs.jobs import beside
from app.jobs.records import JobRecords
from app.jobs.schedule import POSTGRES, TRAINING, UPKEEP, jobs_of, periods, upkeep
from app.postgres.pools import dsn
from app.runtime import Runtime, running
from app.settings import Settings
from app.settings.numbers import CENTURY_DAYS, LONGEST_S
from app.training.processes import Trainings
from retrieval.errors import Deadlocked
from tests.cluster import one_postgres
from writer.author import Author
from writer.retain.retain import retain
from writer.retain.steps import StepsTaken, append_steps, prepare_steps
from writer.run import FinishedRun

DEADLOCK = """
CREATE FUNCTION deadlocked() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END $$;
CREATE TRIGGER deadlocked BEFORE DELETE ON cases EXECUTE FUNCTION deadlocked();
"""
CLOCK_BEHIND = """
CREATE SCHEMA clock;
GRANT USAGE ON SCHEMA clock TO PUBLIC;
CREATE FUNCTION clock.now() RETURNS timestamptz STABLE LANGUAGE sql AS
$$ SELECT pg_catalog.now() - interval '30 days' $$;
"""
"""A clock of the database that is 30 days behind that of this machine."""


def settings(url: str | None, home: Path, **more: Any) -> Settings:
    given = {"home": home, "database_url": url, "master_key": "5" * 64, **more}
    return Settings(**given)


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn(database_url))
    yield connection
    await connection.close()


async def prune_one_two_days_ago(runtime: Runtime, owner: asyncpg.Connection) -> str:
    """Returns the user of a case that was pruned then."""
    user = f"user-{uuid4()}"
    run = FinishedRun(agent="agent", task="a task", outcome="success")
    await retain(runtime.database, runtime.keyring, run, Author(user, "test", datetime.now(UTC)))
    await owner.execute(
        "UPDATE cases SET status = 'pruned', pruned_at = now() - interval '2 days' WHERE user_sub = $1", user
    )
    return user


async def until(runtime: Runtime, job: str, enough: Callable[[int], bool]) -> None:
    """Waits for as many failures in a row as are enough."""
    async with asyncio.timeout(60):
        while not enough((await JobRecords(runtime.database).of(job)).failures):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


async def cases_of(owner: asyncpg.Connection, user: str) -> int:
    return await owner.fetchval("SELECT count(*) FROM cases WHERE user_sub = $1", user)


@pytest.mark.parametrize(("kept_days", "left"), [(1, 0), (3, 1), (CENTURY_DAYS, 1)])
async def test_upkeep_keeps_pruned_cases_for_as_long_as_the_settings_say(
    database_url: str, tmp_path: Path, owner: asyncpg.Connection, kept_days: int, left: int
):
    async with running(settings(database_url, tmp_path, pruned_kept_days=kept_days, run_silent_s=LONGEST_S)) as runtime:
        user = await prune_one_two_days_ago(runtime, owner)
        await upkeep(runtime)
    assert await cases_of(owner, user) == left


@one_postgres
async def test_upkeep_prunes_by_the_clock_of_the_database(database_url: str, tmp_path: Path, owner: asyncpg.Connection):
    async with running(settings(database_url, tmp_path)) as runtime:
        user = await prune_one_two_days_ago(runtime, owner)
    name = await owner.fetchval("SELECT current_database()")
    await owner.execute(CLOCK_BEHIND)
    await owner.execute(f'ALTER DATABASE "{name}" SET search_path = clock, pg_catalog, public')
    try:
        async with running(settings(database_url, tmp_path, pruned_kept_days=1)) as runtime:
            await upkeep(runtime)
    finally:
        await owner.execute(f'ALTER DATABASE "{name}" RESET search_path; DROP SCHEMA clock CASCADE')
    assert await cases_of(owner, user) == 1


@one_postgres
async def test_upkeep_goes_on_after_a_deadlock(database_url: str, tmp_path: Path, owner: asyncpg.Connection):
    often = settings(database_url, tmp_path, upkeep_every_s=0.05, pruned_kept_days=1)
    async with running(often) as runtime:
        user = await prune_one_two_days_ago(runtime, owner)
        await owner.execute(DEADLOCK)
        async with beside([job.run for job in jobs_of(runtime, Trainings(often))]):
            await until(runtime, UPKEEP, lambda failures: failures >= 2)
            await owner.execute("DROP FUNCTION deadlocked CASCADE")
            await until(runtime, UPKEEP, lambda failures: failures == 0)
    assert await cases_of(owner, user) == 0


@one_postgres
async def test_silent_runs_end_although_a_profile_cannot_be_pruned(
    database_url: str, tmp_path: Path, owner: asyncpg.Connection
):
    async with running(settings(database_url, tmp_path, pruned_kept_days=1)) as runtime:
        user = await prune_one_two_days_ago(runtime, owner)
        taken = {"agent": "agent", "task": "a task", "steps": [{"number": 1, "tool": "t", "output": "o"}]}
        steps, author = prepare_steps(StepsTaken.model_validate(taken)), Author(user, "test", datetime.now(UTC))
        await append_steps(runtime.database, runtime.keyring, uuid4(), steps, author)
        await owner.execute("UPDATE runs SET last_step_at = now() - interval '1 day' WHERE user_sub = $1", user)
        await owner.execute(DEADLOCK)
        with pytest.raises(Deadlocked):
            await upkeep(runtime)
        await owner.execute("DROP FUNCTION deadlocked CASCADE")
    assert await owner.fetchval("SELECT status FROM runs WHERE user_sub = $1", user) == "aborted"


async def test_training_that_fails_is_a_failure_of_the_job(database_url: str, tmp_path: Path):
    broken = settings(database_url, tmp_path, train_every_s=0.05, master_key=None)
    async with running(settings(database_url, tmp_path)) as runtime:
        (tmp_path / "secrets.json").write_text("not JSON, so no process can read its key")
        jobs = jobs_of(replace(runtime, settings=broken), Trainings(broken))
        async with beside([job.run for job in jobs if job.name == TRAINING]):
            await until(runtime, TRAINING, lambda failures: failures > 0)
        assert (await JobRecords(runtime.database).of(TRAINING)).last_error == "TrainingFailed"


def test_training_that_is_switched_off_is_no_job(tmp_path: Path):
    assert periods(settings(None, tmp_path, train_every_s=0, upkeep_every_s=60)) == {UPKEEP: timedelta(minutes=1)}


async def test_upkeep_and_training_are_done_once_for_all_processes(database_url: str, tmp_path: Path):
    async with running(settings(database_url, tmp_path)) as runtime:
        jobs = jobs_of(runtime, Trainings(runtime.settings))
    assert {job.name for job in jobs if job.is_shared} == {UPKEEP, TRAINING}


async def test_only_its_own_postgres_is_watched(database_url: str, tmp_path: Path):
    async with running(settings(database_url, tmp_path)) as runtime:
        theirs = jobs_of(runtime, Trainings(runtime.settings))
        own = jobs_of(replace(runtime, settings=settings(None, tmp_path)), Trainings(runtime.settings))
    assert {job.name for job in own} - {job.name for job in theirs} == {POSTGRES}
