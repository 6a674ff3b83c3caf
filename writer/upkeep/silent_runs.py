"""Ends runs under way that have had no new step for a long time, as aborted.

Such a run becomes a case, from which no procedure is learned and which credits no other case; lists show the case only
on request.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy import Row, Select, func, select

from retrieval.database.database import Database
from retrieval.errors import SealBroken
from retrieval.pages.listing import one_of
from retrieval.tables.runs import runs
from retrieval.telemetry import log
from writer.author import Author
from writer.errors import RunEnded, SecretInName, UnknownReference
from writer.privacy.keys import Keyring
from writer.privacy.seal import PayloadTooLarge
from writer.profiles import Profile, in_every_profile
from writer.retain.prepare import prepare
from writer.retain.retain import store
from writer.run import LONGEST_TASK, FinishedRun

ACTOR = "upkeep"
"""Actor of the end of a silent run, in the audit and as the source of its case."""
NO_TASK = "task deleted"
"""Task of the case of a run that went on after its user had deleted the case that it was, and the task with it."""


async def abort_all(database: Database, keyring: Keyring, *, silent_for: timedelta) -> int:
    """Ends every run that has had no new step for ``silent_for``, and returns the number of ended runs.

    Raises:
        DatabaseUnavailable, Exception: see ``in_every_profile``; the runs that were ended stay ended.
    """
    done = 0
    async for ended in in_every_profile(database, partial(_abort, database, keyring, silent_for)):
        done += ended
    return done


async def _abort(database: Database, keyring: Keyring, silent_for: timedelta, profile: Profile) -> int:
    """Ends the silent runs of a profile, and returns their number."""
    done = 0
    async with database.as_user(profile.user_sub, profile.seen_at) as connection:
        abandoned = (await connection.execute(silent(profile.user_sub, profile.agent_key, silent_for))).all()
    for run in abandoned:
        try:
            done += await _end(database, keyring, profile, run)
        except (RunEnded, UnknownReference):
            continue  # another call ended it meanwhile, added a step, or deleted it
        except (PayloadTooLarge, SealBroken, SecretInName, ValidationError) as error:
            # a run that cannot be ended is a matter of that user
            log.warning("upkeep.run_not_ended", error=type(error).__name__)
    return done


async def _end(database: Database, keyring: Keyring, profile: Profile, abandoned: Row[UUID, datetime]) -> bool:
    """Ends a run as aborted, given a row of ``silent``; returns False if the run was deleted meanwhile."""
    run_id, last_step_at = abandoned
    async with database.as_user(profile.user_sub, profile.seen_at) as connection:
        run = (await connection.execute(one_of(runs, profile.user_sub, run_id))).one_or_none()
        words = await keyring.find(connection, profile.user_sub)
    if run is None or words is None:
        return False
    task = words.open_run(run_id, run.words)[:LONGEST_TASK] or NO_TASK
    finished = FinishedRun(agent=profile.agent_key, task=task, outcome="aborted", run_id=run_id)
    prepared = replace(prepare(finished), ends_as="aborted", created_at=last_step_at)
    await store(database, keyring, prepared, Author(profile.user_sub, ACTOR, profile.seen_at))
    return True


def silent(user_sub: str, agent_key: str, silent_for: timedelta) -> Select[UUID, datetime]:
    """Returns a statement that selects the runs under way without a new step for ``silent_for``, oldest first.

    Its columns are a run's id and the time of its last step.
    """
    mine = runs.c.user_sub == user_sub, runs.c.agent_key == agent_key, runs.c.status == "under_way"
    last = runs.c.last_step_at
    return select(runs.c.id, last).where(*mine, last < func.now() - silent_for).order_by(last, runs.c.id)
