"""SQL that selects the rows of a profile to remove: merged cases, rows unused for too long, old decisions and runs."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, and_, func, literal, select

from retrieval.tables.cases import cases
from retrieval.tables.checkpoints import checkpoints
from retrieval.tables.decisions import decisions
from retrieval.tables.facts import facts
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import runs
from retrieval.tables.sessions import sessions

BATCH = 1_000
"""Maximum number of rows that one transaction prunes."""
LAST_USED = func.greatest(cases.c.created_at, cases.c.last_used_at)  # greatest ignores NULL


def merged(user_sub: str, agent_key: str) -> Select[UUID]:
    """Returns a statement that selects BATCH cases that were merged into another case, the oldest first."""
    return _of_status(user_sub, agent_key, "merged").order_by(cases.c.created_at, cases.c.id).limit(BATCH)


def expired(user_sub: str, agent_key: str, now: datetime) -> Select[UUID]:
    """Returns a statement that selects BATCH ready cases unused for the profile's ``ttl_days``, the oldest first."""
    profile = and_(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
    # compared as an interval: the date that lies ttl_days back may not exist
    age = literal(now) - LAST_USED
    too_old = age > func.make_interval(0, 0, 0, profiles.c.ttl_days)
    statement = _of_status(user_sub, agent_key, "ready").join(profiles, profile).where(too_old)
    return statement.order_by(LAST_USED, cases.c.id).limit(BATCH)


def long_pruned(user_sub: str, agent_key: str, before: datetime) -> Select[UUID]:
    """Returns a statement that selects BATCH cases pruned before ``before``, the oldest first, for deletion."""
    statement = _of_status(user_sub, agent_key, "pruned").where(cases.c.pruned_at < before)
    return statement.order_by(cases.c.pruned_at, cases.c.id).limit(BATCH)


def old_decisions(user_sub: str, agent_key: str, before: datetime) -> Select[UUID]:
    """Returns a statement that selects BATCH decisions logged before ``before``, the oldest first, for deletion."""
    return (
        select(decisions.c.id)
        .where(decisions.c.user_sub == user_sub, decisions.c.agent_key == agent_key, decisions.c.created_at < before)
        .order_by(decisions.c.created_at, decisions.c.id)
        .limit(BATCH)
    )


def ended_runs(user_sub: str, agent_key: str, before: datetime) -> Select[UUID]:
    """Returns a statement that selects BATCH runs (sent step by step) that ended before ``before``, oldest first."""
    return (
        select(runs.c.id)
        .where(runs.c.user_sub == user_sub, runs.c.agent_key == agent_key, runs.c.ended_at < before)
        .order_by(runs.c.ended_at, runs.c.id)
        .limit(BATCH)
    )


def expired_sessions(user_sub: str, agent_key: str, now: datetime) -> Select[UUID]:
    """Returns a statement that selects BATCH sessions without a new turn for the profile's ``session_ttl_days``."""
    profile = and_(profiles.c.user_sub == sessions.c.user_sub, profiles.c.agent_key == sessions.c.agent_key)
    age = literal(now) - sessions.c.last_turn_at
    return (
        select(sessions.c.id)
        .join(profiles, profile)
        .where(
            sessions.c.user_sub == user_sub,
            sessions.c.agent_key == agent_key,
            age > func.make_interval(0, 0, 0, profiles.c.session_ttl_days),
        )
        .order_by(sessions.c.last_turn_at, sessions.c.id)
        .limit(BATCH)
    )


def expired_checkpoints(user_sub: str, agent_key: str, now: datetime) -> Select[UUID]:
    """Returns a statement that selects BATCH checkpoint rows of threads without a new row for ``session_ttl_days``."""
    profile = and_(profiles.c.user_sub == checkpoints.c.user_sub, profiles.c.agent_key == checkpoints.c.agent_key)
    mine = checkpoints.c.user_sub == user_sub, checkpoints.c.agent_key == agent_key
    newest = func.max(checkpoints.c.created_at)
    silent = (
        select(checkpoints.c.thread)
        .join(profiles, profile)
        .where(*mine)
        .group_by(checkpoints.c.thread, profiles.c.session_ttl_days)
        .having(literal(now) - newest > func.make_interval(0, 0, 0, profiles.c.session_ttl_days))
    )
    parts = select(checkpoints.c.id).where(*mine, checkpoints.c.thread.in_(silent))
    return parts.order_by(checkpoints.c.id).limit(BATCH)


def expired_facts(user_sub: str, agent_key: str, now: datetime) -> Select[UUID]:
    """Returns a statement that selects BATCH facts that no turn has stated for the profile's ``ttl_days``."""
    profile = and_(profiles.c.user_sub == facts.c.user_sub, profiles.c.agent_key == facts.c.agent_key)
    age = literal(now) - facts.c.last_told_at
    return (
        select(facts.c.id)
        .join(profiles, profile)
        .where(
            facts.c.user_sub == user_sub,
            facts.c.agent_key == agent_key,
            age > func.make_interval(0, 0, 0, profiles.c.ttl_days),
        )
        .order_by(facts.c.last_told_at, facts.c.id)
        .limit(BATCH)
    )


def expired_procedures(user_sub: str, agent_key: str, now: datetime) -> Select[UUID]:
    """Returns a statement that selects BATCH procedures unused for the profile's ``ttl_days``; never a pinned one.

    The same limit holds for procedures that outlived the case that they were learned from.
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


def _of_status(user_sub: str, agent_key: str, status: str) -> Select[UUID]:
    """Returns a statement that selects the profile's cases of that status."""
    return select(cases.c.id).where(
        cases.c.user_sub == user_sub,
        cases.c.agent_key == agent_key,
        cases.c.status == status,
    )
