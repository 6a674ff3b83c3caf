"""Pruning: keeps the cases of a profile that are worth most, softly first, and for good a month later."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from sqlalchemy import Delete, Select, Update, delete, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.errors import UserErased
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.facts import facts
from retrieval.tables.procedures import procedures
from retrieval.tables.runs import runs
from retrieval.tables.sessions import sessions
from writer.audit import Change, note
from writer.procedures.case_deletion import forget_sources, forget_words, keep_without_case
from writer.profiles import Profile, each_profile, lock_profile
from writer.upkeep.expiry import (
    BATCH,
    ended_runs,
    expired,
    expired_facts,
    expired_procedures,
    expired_sessions,
    long_pruned,
    merged,
    old_decisions,
)
from writer.upkeep.retention import crowded_out, too_many_procedures

KEPT = timedelta(days=30)
"""Time for which a pruned case can still be brought back."""
DECISIONS_KEPT = timedelta(days=180)
PROCEDURES_KEPT = 1_000
"""Most procedures of a profile: each retrieve compares its query with all of their triggers."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """Numbers of rows: cases that left the bank, cases that left before and are deleted now, and other deleted rows."""

    soft: int = 0
    hard: int = 0
    decisions: int = 0
    procedures: int = 0
    runs: int = 0
    sessions: int = 0
    facts: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(
            self.soft + other.soft,
            self.hard + other.hard,
            self.decisions + other.decisions,
            self.procedures + other.procedures,
            self.runs + other.runs,
            self.sessions + other.sessions,
            self.facts + other.facts,
        )


Preparation = Callable[[AsyncConnection, str, Sequence[UUID]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Sweep:
    """The rows to pick, at most BATCH at a time, the statement to run on them, and the reason that the audit gives.

    Attributes:
        action: the audit's name for it.
        before: steps that come first in the same transaction, for the cases' procedures.
    """

    pick: Select[UUID]
    act: Callable[[Sequence[UUID]], Update | Delete]
    why: str | None
    action: str = "prune_case"
    before: Sequence[Preparation] = ()


async def prune_all(database: Database, *, now: datetime, kept: timedelta = KEPT) -> Pruned:
    """Prunes every profile and returns what left, summed.

    Raises:
        DatabaseUnavailable: what was pruned so far stays pruned.
    """
    total = Pruned()
    async for profile in each_profile(database):
        with suppress(UserErased):
            total += await prune(database, profile, now=now, kept=kept)
    return total


async def prune(
    database: Database,
    profile: Profile,
    *,
    now: datetime,
    kept: timedelta = KEPT,
    procedures_kept: int = PROCEDURES_KEPT,
) -> Pruned:
    """Prunes one profile and returns what left: softly the merged, the expired and the ones too many.

    Cases that are pending or dead stay, however old: somebody has yet to look at them. What was learned outlives the
    case that it was learned from, unless that expired: then it leaves with it, at once.

    Raises:
        UserErased: the user was erased after the profile was listed.
        DatabaseUnavailable: what was pruned so far stays pruned.
    """
    user_sub, agent_key = profile.user_sub, profile.agent_key
    mine = user_sub, agent_key
    mark = partial(mark_pruned, user_sub, now=now)
    soft = (
        _Sweep(merged(*mine), mark, "merged"),
        _Sweep(expired(*mine, now), mark, "ttl", before=(forget_words, forget_sources)),
        _Sweep(crowded_out(*mine), mark, "window"),
    )
    delete_case, before = partial(delete_cases, user_sub), (keep_without_case, forget_sources)
    hard = _Sweep(long_pruned(*mine, now - kept), delete_case, "deleted", before=before)
    delete_version = partial(delete_procedures, user_sub)
    procedure_sweeps = (
        _Sweep(expired_procedures(*mine, now), delete_version, "ttl", "prune_procedure"),
        _Sweep(too_many_procedures(*mine, procedures_kept), delete_version, "window", "prune_procedure"),
    )
    log = _Sweep(old_decisions(*mine, now - DECISIONS_KEPT), partial(delete_decisions, user_sub), None)
    ended = _Sweep(ended_runs(*mine, now - kept), partial(delete_runs, user_sub), "ended", "prune_run")
    silent = _Sweep(expired_sessions(*mine, now), partial(delete_sessions, user_sub), "ttl", "prune_session")
    stale = _Sweep(expired_facts(*mine, now), partial(delete_facts, user_sub), "ttl", "prune_fact")
    return Pruned(
        soft=sum([await _sweep(database, profile, sweep) for sweep in soft]),
        hard=await _sweep(database, profile, hard),
        decisions=await _sweep(database, profile, log),
        procedures=sum([await _sweep(database, profile, sweep) for sweep in procedure_sweeps]),
        runs=await _sweep(database, profile, ended),
        sessions=await _sweep(database, profile, silent),
        facts=await _sweep(database, profile, stale),
    )


async def _sweep(database: Database, profile: Profile, sweep: _Sweep) -> int:
    """Sweeps in transactions of at most BATCH rows, and returns how many rows there were."""
    done = 0
    while True:
        swept = await _sweep_once(database, profile, sweep)
        done += swept
        if swept < BATCH:
            return done


async def _sweep_once(database: Database, profile: Profile, sweep: _Sweep) -> int:
    async with database.as_user(profile.user_sub, profile.seen_at) as connection:
        # the worker may be about to merge a run into a case that goes here
        await lock_profile(connection, profile.user_sub, profile.agent_key)
        ids = (await connection.scalars(sweep.pick)).all()
        for prepare in sweep.before if ids else ():
            await prepare(connection, profile.user_sub, ids)
        if ids:
            await connection.execute(sweep.act(ids))
        if ids and sweep.why is not None:
            owner = profile.user_sub, profile.agent_key
            await note(
                connection, *(Change.of(owner, "prune", sweep.action, subject, why=sweep.why) for subject in ids)
            )
    return len(ids)


def mark_pruned(user_sub: str, case_ids: Sequence[UUID], now: datetime) -> Update:
    """Returns the statement that takes the cases out of the bank, to be found no more but kept."""
    pruned = update(cases).where(cases.c.user_sub == user_sub, cases.c.id.in_(case_ids))
    return pruned.values(status="pruned", pruned_at=now)


def delete_cases(user_sub: str, case_ids: Sequence[UUID]) -> Delete:
    """Returns the statement that deletes the cases with their vectors, reward history and what they are words of."""
    return delete(cases).where(cases.c.user_sub == user_sub, cases.c.id.in_(case_ids))


def delete_procedures(user_sub: str, procedure_ids: Sequence[UUID]) -> Delete:
    """Returns the statement that deletes the procedures with all their versions."""
    return delete(procedures).where(procedures.c.user_sub == user_sub, procedures.c.id.in_(procedure_ids))


def delete_decisions(user_sub: str, decision_ids: Sequence[UUID]) -> Delete:
    """Returns the statement that deletes the decisions with their slots and rewards."""
    return delete(decisions).where(decisions.c.user_sub == user_sub, decisions.c.id.in_(decision_ids))


def delete_runs(user_sub: str, run_ids: Sequence[UUID]) -> Delete:
    """Returns the statement that deletes runs that were under way once, with what steps they still have."""
    return delete(runs).where(runs.c.user_sub == user_sub, runs.c.id.in_(run_ids))


def delete_sessions(user_sub: str, session_ids: Sequence[UUID]) -> Delete:
    """Returns the statement that deletes sessions with their turns."""
    return delete(sessions).where(sessions.c.user_sub == user_sub, sessions.c.id.in_(session_ids))


def delete_facts(user_sub: str, fact_ids: Sequence[UUID]) -> Delete:
    """Returns the statement that deletes facts; what one of them had closed stays closed."""
    return delete(facts).where(facts.c.user_sub == user_sub, facts.c.id.in_(fact_ids))
