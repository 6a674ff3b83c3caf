"""SQL that selects the rows of a profile to remove: merged cases, rows unused for too long, old decisions and runs.

Each statement selects the rows' ids, the oldest first.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Column, ColumnElement, Select, Table, exists, func, literal, or_, select

from retrieval.tables.cases import cases
from retrieval.tables.decisions import decisions
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import checkpoints

LAST_USED = func.greatest(cases.c.created_at, cases.c.last_used_at)  # greatest ignores NULL


def older(owner: tuple[str, str], time: Column[Any], moment: datetime) -> Select[UUID]:
    """Returns the statement for the rows of the profile with a ``time`` before a moment; ``time`` is their column."""
    return _oldest(owner, time.table, time, time < moment)


def old_decisions(owner: tuple[str, str], moment: datetime) -> Select[UUID]:
    """Returns the statement for the decisions before a moment: the profile's, and those of the user without a profile.

    A search of all agents has none, nor has one of an agent that was only asked.
    """
    user_sub, agent_key = owner
    profile = exists().where(profiles.c.user_sub == user_sub, profiles.c.agent_key == decisions.c.agent_key)
    mine = decisions.c.user_sub == user_sub, or_(decisions.c.agent_key == agent_key, ~profile)
    old = select(decisions.c.id).where(*mine, decisions.c.created_at < moment)
    return old.order_by(decisions.c.created_at, decisions.c.id)


def merged(owner: tuple[str, str]) -> Select[UUID]:
    """Returns the statement for the cases that were merged into another case."""
    return _oldest(owner, cases, cases.c.created_at, cases.c.status == "merged")


def expired(owner: tuple[str, str], now: datetime) -> Select[UUID]:
    """Returns the statement for the ready cases unused for the profile's ``ttl_days``."""
    return _oldest(owner, cases, LAST_USED, cases.c.status == "ready", _is_over(owner, now, LAST_USED, "ttl_days"))


def long_silent(owner: tuple[str, str], now: datetime, time: Column[Any], ttl: str) -> Select[UUID]:
    """Returns the statement for the rows whose ``time`` lies further back than the days in the profile's column."""
    return _oldest(owner, time.table, time, _is_over(owner, now, time, ttl))


def expired_checkpoints(owner: tuple[str, str], now: datetime) -> Select[UUID]:
    """Returns the statement for the checkpoint rows of threads without a new row for ``session_ttl_days``."""
    mine = _of(owner, checkpoints)
    newest = func.max(checkpoints.c.created_at)
    threads = select(checkpoints.c.thread).where(*mine).group_by(checkpoints.c.thread)
    silent_threads = threads.having(_is_over(owner, now, newest, "session_ttl_days"))
    return _oldest(owner, checkpoints, checkpoints.c.id, checkpoints.c.thread.in_(silent_threads))


def expired_procedures(owner: tuple[str, str], now: datetime) -> Select[UUID]:
    """Returns the statement for the procedures unused for the profile's ``ttl_days``; never a pinned one.

    The same limit holds for procedures that outlived the case that they were learned from.
    """
    used = func.max(func.greatest(procedures.c.created_at, procedures.c.last_used_at))
    unused = _is_over(owner, now, used, "ttl_days"), ~func.bool_or(procedures.c.pinned)
    return _oldest(owner, procedures, procedures.c.id).group_by(procedures.c.id).having(*unused)


def _oldest(
    owner: tuple[str, str], table: Any, order: ColumnElement[Any], *conditions: ColumnElement[bool]
) -> Select[UUID]:
    ids = select(table.c.id).where(*_of(owner, table), *conditions)
    return (ids if order is table.c.id else ids.order_by(order)).order_by(table.c.id)


def _of(owner: tuple[str, str], table: Table) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.user_sub == owner[0], table.c.agent_key == owner[1]


def _is_over(owner: tuple[str, str], now: datetime, time: ColumnElement[Any], days: str) -> ColumnElement[bool]:
    """Returns the condition that a time lies further back than the days that a column of the profile has; NULL: never.

    An interval is compared: the date that lies so many days back may not exist.
    """
    limit = select(func.make_interval(0, 0, 0, profiles.c[days])).where(*_of(owner, profiles)).scalar_subquery()
    return literal(now) - time > limit
