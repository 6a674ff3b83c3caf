"""The statistics of a profile: what its bank holds, what came of showing it, and when it was last asked and told."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, ColumnElement, DateTime, Float, Subquery, Text, and_, cast, column, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.database.rows import Rows
from retrieval.tables.cases import cases
from retrieval.tables.decisions import ADVICE, decision_slots, decisions
from retrieval.tables.kinds import FAILED_BELOW
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import runs

OFF = "off"
"""The mode of a decision without memory."""


def cases_by_status_and_outcome(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement for how many cases there are of each status and outcome, and what they were rewarded.

    Columns: ``status``, ``outcome``, ``cases``, ``runs`` (repeats counted), ``rewarded``, ``rewards`` (their sum),
    ``trusted`` (rewarded by somebody who knows), ``last_at``.
    """
    known = and_(cases.c.reward.is_not(None), cases.c.reward_source != "heuristic")
    return (
        select(
            cases.c.status,
            cases.c.outcome,
            func.count().label("cases"),
            func.sum(cases.c.occurrences).label("runs"),
            func.count(cases.c.reward).label("rewarded"),
            func.coalesce(func.sum(cases.c.reward), 0.0).label("rewards"),
            func.count().filter(known).label("trusted"),
            func.max(cases.c.created_at).label("last_at"),
        )
        .where(cases.c.user_sub == user_sub, cases.c.agent_key == agent_key)
        .group_by(cases.c.status, cases.c.outcome)
        .order_by(cases.c.status, cases.c.outcome)
    )


def retrievals(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement for one row about the decisions that are still in the log.

    Columns: ``decisions``, ``without_memory``, ``with_cases``, ``tokens`` (their sum), ``last_retrieved_at``,
    and the rewarded ones with their mean reward: ``rewarded_with_cases``, ``mean_reward_with_cases``,
    ``rewarded_without_memory``, ``mean_reward_without_memory``.
    """
    slates = _slates(user_sub)
    shown, off = slates.c.decision_id.is_not(None), decisions.c.mode == OFF
    rewarded = decisions.c.reward.is_not(None)
    return (
        select(
            func.count().label("decisions"),
            func.count().filter(off).label("without_memory"),
            func.count().filter(shown).label("with_cases"),
            func.coalesce(func.sum(decisions.c.tokens), 0).label("tokens"),
            func.max(decisions.c.created_at).label("last_retrieved_at"),
            func.count().filter(and_(shown, rewarded)).label("rewarded_with_cases"),
            func.avg(decisions.c.reward).filter(shown).label("mean_reward_with_cases"),
            func.count().filter(and_(off, rewarded)).label("rewarded_without_memory"),
            func.avg(decisions.c.reward).filter(off).label("mean_reward_without_memory"),
        )
        .select_from(decisions)
        .outerjoin(slates, slates.c.decision_id == decisions.c.id)
        .where(*_of(user_sub, agent_key))
    )


def shown_cases(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement for one row about the places of the slates that are still in the log.

    Columns: ``shown``, ``used`` (as the backend said), ``judged`` (of rewarded decisions), and of these ``helped``: not
    said to be unused, and the reward no failure's. ``helped / judged`` is the precision at k.
    """
    judged = decisions.c.reward.is_not(None)
    slot = decision_slots.c
    return (
        select(
            func.count().label("shown"),
            func.count().filter(slot.used).label("used"),
            func.count().filter(judged).label("judged"),
            func.count().filter(and_(decisions.c.reward >= FAILED_BELOW, maybe_used(slot.used))).label("helped"),
        )
        .select_from(decisions)
        .join(decision_slots, and_(slot.user_sub == decisions.c.user_sub, slot.decision_id == decisions.c.id))
        .where(*_of(user_sub, agent_key))
    )


def maybe_used(used: ColumnElement[bool]) -> ColumnElement[bool]:
    """Returns whether a place was used, or nobody said that it was not."""
    return or_(used.is_(None), used)


def active_procedures(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement for the active procedures by kind: ``procedures``, ``uses`` and ``use_reward`` (sums)."""
    return (
        select(
            procedures.c.kind,
            func.count().label("procedures"),
            func.sum(procedures.c.uses).label("uses"),
            func.sum(procedures.c.use_reward).label("use_reward"),
        )
        .where(procedures.c.user_sub == user_sub, procedures.c.agent_key == agent_key, procedures.c.status == "active")
        .group_by(procedures.c.kind)
        .order_by(procedures.c.kind)
    )


def runs_under_way(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement for the number of runs under way."""
    return select(func.count()).where(
        runs.c.user_sub == user_sub, runs.c.agent_key == agent_key, runs.c.status == "under_way"
    )


def runs_by_week(user_sub: str, agent_key: str, weeks: Sequence[datetime]) -> Rows:
    """Returns the statement for sums over runs, by week and by whether a case was shown to them.

    Columns: ``week`` (number of the one that it began in, from 1 on), ``shown``, ``runs``, ``rewarded``, ``reward`` and
    ``reward_sd`` (over the rewarded ones, guesses by rule included), ``steps``, ``steps_sd`` and ``errors``. A run
    without a retrieve was shown no case.

    Args:
        user_sub: owner of the runs.
        agent_key: agent of the runs.
        weeks: beginnings of the weeks, rising; the last week goes on until now.
    """
    slates = _slates(user_sub)
    week = func.width_bucket(cases.c.created_at, cast(list(weeks), ARRAY(DateTime(timezone=True)))).label("week")
    shown = slates.c.decision_id.is_not(None).label("shown")
    return (
        select(
            week,
            shown,
            func.count().label("runs"),
            func.count(cases.c.reward).label("rewarded"),
            func.avg(cases.c.reward).label("reward"),
            func.stddev_samp(cases.c.reward).label("reward_sd"),
            func.avg(cases.c.step_count).label("steps"),
            func.stddev_samp(cases.c.step_count).label("steps_sd"),
            func.avg(cases.c.error_count).label("errors"),
        )
        .select_from(cases)
        .outerjoin(slates, slates.c.decision_id == cases.c.retrieval_id)
        .where(cases.c.user_sub == user_sub, cases.c.agent_key == agent_key, cases.c.created_at >= weeks[0])
        .where(cases.c.kind == "task", cases.c.status.in_(("ready", "merged", "pruned")))
        .group_by(week, shown)
        .order_by(week, shown)
    )


def degraded(user_sub: str, agent_key: str, days: int) -> Rows:
    """Returns the statement for what answers of the last days lacked: ``what``, and in how many ``decisions``."""
    lately = (
        select(func.unnest(decisions.c.degraded).label("what"))
        .where(*_of(user_sub, agent_key), decisions.c.created_at >= func.now() - timedelta(days=days))
        .subquery()
    )
    return select(lately.c.what, func.count().label("decisions")).group_by(lately.c.what).order_by(lately.c.what)


def users() -> Rows:
    """Returns the statement for how many ``users`` and ``profiles`` there are; the connection must be the worker's."""
    return select(func.count(profiles.c.user_sub.distinct()).label("users"), func.count().label("profiles"))


def cases_of_all() -> Rows:
    """Returns the statement for how many cases all users have, by status; the connection must be the worker's."""
    return select(cases.c.status, func.count().label("cases")).group_by(cases.c.status).order_by(cases.c.status)


def policies_of_all() -> Rows:
    """Returns the statement for how many policies all users have, by status and last verdict, and nothing of whose.

    Columns: ``status``, ``verdict`` (the gate's word; NULL: none yet), ``policies``, ``decisions`` (mean, that they
    learned from). The connection must be the worker's.
    """
    names = column("status", Text), column("verdict", Text), column("policies", BigInteger), column("decisions", Float)
    return select(func.casebank_count_policies().table_valued(*names, name="counted"))


def _slates(user_sub: str) -> Subquery:
    """The decisions that showed a case."""
    slot = decision_slots.c
    return select(slot.decision_id).where(slot.user_sub == user_sub, slot.place == 1).subquery()


def _of(user_sub: str, agent_key: str) -> tuple[ColumnElement[bool], ...]:
    return decisions.c.user_sub == user_sub, decisions.c.agent_key == agent_key, decisions.c.mode != ADVICE
