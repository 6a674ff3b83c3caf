"""Pruning: keeps the cases of a profile that are worth most, softly first, and for good a month later."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import (
    CTE,
    Delete,
    Float,
    Select,
    Update,
    and_,
    case,
    cast,
    delete,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import UserErased
from retrieval.schema import cases, decisions, procedures, profiles
from writer.audit import Change, note
from writer.procedures.case_deletion import forget_sources, forget_words, keep_without_case
from writer.profiles import Profile, each_profile, lock_profile

KEPT = timedelta(days=30)
"""How long a pruned case can still be brought back."""
DECISIONS_KEPT = timedelta(days=180)
PROCEDURES_KEPT = 1_000
"""Of one profile: each retrieve compares its query with all of their triggers."""
BATCH = 1_000
"""Most rows that one transaction prunes."""
STALEST = 0.25
"""What the case that was used longest ago weighs beside the freshest one."""

_last_used = func.greatest(cases.c.created_at, cases.c.last_used_at)  # which passes over NULL


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many cases left the bank, how many of those that had left before are gone for good, and what else went."""

    soft: int = 0
    hard: int = 0
    decisions: int = 0
    procedures: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(
            self.soft + other.soft,
            self.hard + other.hard,
            self.decisions + other.decisions,
            self.procedures + other.procedures,
        )


Preparation = Callable[[AsyncConnection, str, Sequence[UUID]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Sweep:
    """What to pick, at most BATCH at a time, what to do with it, and the reason that the audit gives.

    Attributes:
        action: what the audit calls it.
        before: what is done first in the same transaction: what becomes of the cases' procedures.
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

    def prune_softly(ids: Sequence[UUID]) -> Update:
        return mark_pruned(user_sub, ids, now)

    soft = (
        _Sweep(merged(user_sub, agent_key), prune_softly, "merged"),
        _Sweep(expired(user_sub, agent_key, now), prune_softly, "ttl", before=(forget_words, forget_sources)),
        _Sweep(crowded_out(user_sub, agent_key), prune_softly, "window"),
    )
    hard = _Sweep(
        long_pruned(user_sub, agent_key, now - kept),
        lambda ids: delete_cases(user_sub, ids),
        "deleted",
        before=(keep_without_case, forget_sources),
    )

    def delete_versions(ids: Sequence[UUID]) -> Delete:
        return delete_procedures(user_sub, ids)

    procedure_sweeps = (
        _Sweep(expired_procedures(user_sub, agent_key, now), delete_versions, "ttl", "prune_procedure"),
        _Sweep(too_many_procedures(user_sub, agent_key, procedures_kept), delete_versions, "window", "prune_procedure"),
    )
    log = _Sweep(
        old_decisions(user_sub, agent_key, now - DECISIONS_KEPT), lambda ids: delete_decisions(user_sub, ids), None
    )
    return Pruned(
        soft=sum([await _sweep(database, profile, sweep) for sweep in soft]),
        hard=await _sweep(database, profile, hard),
        decisions=await _sweep(database, profile, log),
        procedures=sum([await _sweep(database, profile, sweep) for sweep in procedure_sweeps]),
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


def merged(user_sub: str, agent_key: str) -> Select[UUID]:
    """Returns the statement for cases that live on as a count of another one."""
    return _of_status(user_sub, agent_key, "merged").order_by(cases.c.created_at, cases.c.id).limit(BATCH)


def expired(user_sub: str, agent_key: str, now: datetime) -> Select[UUID]:
    """Returns the statement for ready cases unused for the profile's ``ttl_days``, whatever their worth."""
    profile = and_(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
    # days as an interval, for the date that lies a great many days back may not exist
    age = literal(now) - _last_used
    too_old = age > func.make_interval(0, 0, 0, profiles.c.ttl_days)
    statement = _of_status(user_sub, agent_key, "ready").join(profiles, profile).where(too_old)
    return statement.order_by(_last_used, cases.c.id).limit(BATCH)


def crowded_out(user_sub: str, agent_key: str) -> Select[UUID]:
    """Returns the statement for ready cases beyond the profile's window, by `retention`, the least worth first."""
    bank = retention(user_sub, agent_key)
    best_first = bank.c.retention.desc(), bank.c.last_used.desc(), bank.c.id.desc()
    ranked = select(bank.c.id, func.row_number().over(order_by=best_first).label("rank")).cte("ranked")
    window = (
        select(profiles.c.window_size)
        .where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
        .scalar_subquery()
    )
    return select(ranked.c.id).where(ranked.c.rank > window).order_by(ranked.c.rank.desc()).limit(BATCH)


def long_pruned(user_sub: str, agent_key: str, before: datetime) -> Select[UUID]:
    """Returns the statement for cases that were pruned before that time."""
    statement = _of_status(user_sub, agent_key, "pruned").where(cases.c.pruned_at < before)
    return statement.order_by(cases.c.pruned_at, cases.c.id).limit(BATCH)


def old_decisions(user_sub: str, agent_key: str, before: datetime) -> Select[UUID]:
    """Returns the statement for decisions that were logged before that time."""
    return (
        select(decisions.c.id)
        .where(decisions.c.user_sub == user_sub, decisions.c.agent_key == agent_key, decisions.c.created_at < before)
        .order_by(decisions.c.created_at, decisions.c.id)
        .limit(BATCH)
    )


def expired_procedures(user_sub: str, agent_key: str, now: datetime) -> Select[UUID]:
    """Returns the statement for procedures unused for the profile's ``ttl_days``; never a pinned one.

    One that outlived its case is no older than any other may be.
    """
    age = literal(now) - func.max(func.greatest(procedures.c.created_at, procedures.c.last_used_at))
    days = (
        select(profiles.c.ttl_days)
        .where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
        .scalar_subquery()
    )
    return (
        select(procedures.c.id)
        .where(procedures.c.user_sub == user_sub, procedures.c.agent_key == agent_key)
        .group_by(procedures.c.id)
        .having(age > func.make_interval(0, 0, 0, days), ~func.bool_or(procedures.c.pinned))
        .order_by(procedures.c.id)
        .limit(BATCH)
    )


def too_many_procedures(user_sub: str, agent_key: str, kept: int) -> Select[UUID]:
    """Returns the statement for procedures beyond those to be kept, the least worth first; never a pinned one.

    Their worth is the Beta(1, 1) posterior mean of their uses' rewards, times the same freshness as a case's.
    """
    mine = procedures.c.user_sub == user_sub, procedures.c.agent_key == agent_key
    used = func.max(func.greatest(procedures.c.created_at, procedures.c.last_used_at))
    expected = (1.0 + func.sum(procedures.c.use_reward)) / (2.0 + func.sum(procedures.c.uses))
    newer = func.row_number().over(order_by=(used.desc(), procedures.c.id.desc())) - 1
    freshness = 1.0 - (1.0 - STALEST) * cast(newer, Float) / cast(func.count().over(), Float)
    pinned = func.bool_or(procedures.c.pinned)
    every = select(procedures.c.id, (expected * freshness).label("worth"), pinned.label("pinned")).where(*mine)
    worth = every.group_by(procedures.c.id).subquery()
    best_first = worth.c.pinned.desc(), worth.c.worth.desc(), worth.c.id.desc()
    ranked = select(worth, func.row_number().over(order_by=best_first).label("rank")).subquery()
    crowded = select(ranked.c.id).where(ranked.c.rank > kept, ~ranked.c.pinned)
    return crowded.order_by(ranked.c.rank.desc()).limit(BATCH)


def retention(user_sub: str, agent_key: str) -> CTE:
    """Returns id, last_used and retention (above 0, higher is kept longer) of each ready case (SOURCES row C12).

    ``retention = expected * freshness / (1 + (1 - expected) * ln(frequency)) / copy``, where

    * ``expected``: the Beta(1, 1) posterior mean of the case's own reward and of its reuses' rewards;
    * ``freshness``: 1 for the case that was made or used last, falling evenly by rank towards STALEST. By rank
      and not by age, so that a holiday makes nobody forget. A failure so leaves at two thirds of the life of a
      success, and a case that keeps helping outlives both;
    * ``frequency``: runs merged into the case and reuses; what comes often and pays little weighs less (anti-swamping);
    * ``copy``: 1 for the best of the cases with the same plan and outcome, 2 for the next, … (diversity).
    """
    worth = _worth(user_sub, agent_key).cte("worth")
    alike = func.row_number().over(
        partition_by=(worth.c.plan, worth.c.planless, worth.c.outcome),
        order_by=(worth.c.worth.desc(), worth.c.last_used.desc(), worth.c.id.desc()),
    )
    return select(worth.c.id, worth.c.last_used, (worth.c.worth / alike).label("retention")).cte("retention")


def _worth(user_sub: str, agent_key: str) -> Rows:
    """Retention but for the copies."""
    own = case((cases.c.reward.is_(None), 0.0), else_=1.0)
    earned = func.coalesce(cases.c.reward, 0.0) + cases.c.reuse_reward
    expected = cast(1.0 + earned, Float) / cast(2.0 + own + cases.c.reuse_count, Float)
    newer = func.row_number().over(order_by=(_last_used.desc(), cases.c.id.desc())) - 1
    freshness = 1.0 - (1.0 - STALEST) * cast(newer, Float) / cast(func.count().over(), Float)
    swamping = 1.0 + (1.0 - expected) * func.ln(cast(cases.c.occurrences + cases.c.reuse_count, Float))
    # runs without a plan did not do the same: only those of the same words are copies
    planless = case((func.cardinality(cases.c.plan) == 0, cases.c.message_hash))
    return select(
        cases.c.id,
        cases.c.plan,
        planless.label("planless"),
        cases.c.outcome,
        _last_used.label("last_used"),
        (expected * freshness / swamping).label("worth"),
    ).where(cases.c.user_sub == user_sub, cases.c.agent_key == agent_key, cases.c.status == "ready")


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


def _of_status(user_sub: str, agent_key: str, status: str) -> Select[UUID]:
    return select(cases.c.id).where(
        cases.c.user_sub == user_sub,
        cases.c.agent_key == agent_key,
        cases.c.status == status,
    )
