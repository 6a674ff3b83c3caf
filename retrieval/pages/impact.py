"""Statements for the impact of memory: rewards, uses by week, and cases that never helped."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import DateTime, and_, cast, exists, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.database.rows import Rows
from retrieval.pages.listing import Span
from retrieval.pages.statistics import OFF, maybe_used
from retrieval.tables.cases import cases
from retrieval.tables.columns import columns_of
from retrieval.tables.decisions import ADVICE, decision_slots, decisions
from retrieval.tables.kinds import FAILED_BELOW
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import policies


def earned(user_sub: str, agent_key: str, span: Span) -> Rows:
    """Returns the statement for a span's decisions with memory that had candidates, the newest first.

    Columns: ``query``, ``query_group``, ``reward``, ``slate_propensity``, ``created_at``, ``is_empty`` (no case was
    shown).
    """
    slot = decision_slots.c
    shown = exists().where(slot.user_sub == user_sub, slot.decision_id == decisions.c.id, slot.place == 1)
    return (
        _within(user_sub, agent_key, span, "query query_group reward slate_propensity created_at")
        .add_columns((~shown).label("is_empty"))
        .where(decisions.c.mode != OFF, func.cardinality(decisions.c.candidate_ids) > 0)
    )


def asked_by_week(user_sub: str, agent_key: str, span: Span, weeks: Sequence[datetime]) -> Rows:
    """Returns the statement for sums over a span's decisions, by week.

    Columns: ``week`` (its number, from 1); numbers of ``decisions``, of those with memory (``asked``), with a case on
    the slate (``hits``), with a report of the cases used (``said``) and with a used case (``reused``); ``tokens``
    (their sum).
    """
    newest = _within(user_sub, agent_key, span, "id mode tokens created_at").subquery()
    slot = decision_slots.c
    slates = (
        select(slot.decision_id, func.count(slot.used).label("said"), func.bool_or(slot.used).label("reused"))
        .join(newest, newest.c.id == slot.decision_id)
        .where(slot.user_sub == user_sub)
        .group_by(slot.decision_id)
        .subquery()
    )
    week = func.width_bucket(newest.c.created_at, cast(list(weeks), ARRAY(DateTime(timezone=True)))).label("week")
    return (
        select(
            week,
            func.count().label("decisions"),
            func.count().filter(newest.c.mode != OFF).label("asked"),
            func.count(slates.c.decision_id).label("hits"),
            func.count().filter(slates.c.said > 0).label("said"),
            func.count().filter(slates.c.reused).label("reused"),
            func.sum(newest.c.tokens).label("tokens"),
        )
        .select_from(newest)
        .outerjoin(slates, slates.c.decision_id == newest.c.id)
        .where(newest.c.created_at >= weeks[0])
        .group_by(week)
        .order_by(week)
    )


def never_helped(user_sub: str, agent_key: str, span: Span, *, least: int, limit: int) -> Rows:
    """Returns the statement for the ready cases that never helped, those that were shown most often first.

    Columns: columns of the case, and ``judged`` (number of rewarded decisions that showed it). A case helped in a
    decision if the backend did not report it as unused and the reward was not that of a failure.

    Only cases that at least ``least`` rewarded decisions showed count.
    """
    newest = _within(user_sub, agent_key, span, "id reward").subquery()
    slot = decision_slots.c
    helped = and_(maybe_used(slot.used), newest.c.reward >= FAILED_BELOW)
    shown = (
        select(slot.case_id, func.count().label("judged"))
        .join(newest, newest.c.id == slot.decision_id)
        .where(slot.user_sub == user_sub, newest.c.reward.is_not(None))
        .group_by(slot.case_id)
        .having(func.count() >= least, func.count().filter(helped) == 0)
        .subquery()
    )
    return (
        select(*columns_of(cases, "id task plan words outcome"), shown.c.judged)
        .join(shown, shown.c.case_id == cases.c.id)
        .where(cases.c.user_sub == user_sub, cases.c.status == "ready")
        .order_by(shown.c.judged.desc(), cases.c.id)
        .limit(limit)
    )


def put_right(user_sub: str, agent_key: str, *, limit: int) -> Rows:
    """Returns the statement for the active procedures whose uses earned the most reward in sum, the most first."""
    return (
        select(*columns_of(procedures, "id version kind record trigger uses use_reward"))
        .where(procedures.c.user_sub == user_sub, procedures.c.agent_key == agent_key)
        .where(procedures.c.status == "active", procedures.c.use_reward > 0)
        .order_by(procedures.c.use_reward.desc(), procedures.c.id, procedures.c.version)
        .limit(limit)
    )


def newest_policy(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement for a profile's newest policy, for ``policy_of``; no row if none was learned."""
    return (
        select(*columns_of(policies, "user_sub version created_at weights checksum blend"))
        .where(policies.c.user_sub == user_sub, policies.c.agent_key == agent_key)
        .order_by(policies.c.version.desc())
        .limit(1)
    )


def _within(user_sub: str, agent_key: str, span: Span, names: str) -> Rows:
    """Returns the statement for these columns of the newest decisions of a span; ids rise with time."""
    mine = decisions.c.user_sub == user_sub, decisions.c.agent_key == agent_key, decisions.c.mode != ADVICE
    found = select(*columns_of(decisions, names)).where(*mine, *span.holds(decisions.c.created_at))
    return found.order_by(decisions.c.id.desc()).limit(span.most)
