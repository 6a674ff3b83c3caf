"""Statements for a profile's statistics: what its bank holds, and the rewards of decisions that showed its cases."""

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
"""Mode of a decision for a request for which memory was off."""


def cases_by_status_and_outcome(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement for the numbers and rewards of a profile's cases, by status and outcome.

    Columns: ``status``, ``outcome``, numbers of ``cases``, of their ``runs`` (merged repeats counted), of ``rewarded``
    cases, and of ``trusted`` ones (with a reward that is no guess); ``rewards`` (their sum), ``last_at`` (newest case).
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
    """Returns the statement for one row of sums over a profile's decisions that are still in the log.

    Columns: numbers of ``decisions``, of those ``without_memory`` and of those ``with_cases`` on the slate; ``tokens``
    (sum of the contexts'), ``last_retrieved_at``; numbers and mean rewards of the rewarded decisions:
    ``rewarded_with_cases``, ``mean_reward_with_cases``, ``rewarded_without_memory``, ``mean_reward_without_memory``.
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
    """Returns the statement for one row of numbers of the cases on a profile's logged slates, each place counted.

    Columns: ``shown`` (all places), ``used`` (reported as used by the backend), ``judged`` (on slates of rewarded
    decisions), and ``helped`` (of these, not reported as unused, and with a reward that is not a failure's).
    ``helped / judged`` is the precision at k.
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
    """Returns the condition that a case on a slate was used, or that no report says whether it was."""
    return or_(used.is_(None), used)


def active_procedures(user_sub: str, agent_key: str) -> Rows:
    """Returns the statement for sums over a profile's active procedures, by kind.

    Columns: ``kind``, ``procedures`` (their number), ``uses`` and ``use_reward`` (sums).
    """
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
    """Returns the statement for the number of a profile's runs that have begun and not ended."""
    return select(func.count()).where(
        runs.c.user_sub == user_sub, runs.c.agent_key == agent_key, runs.c.status == "under_way"
    )


def runs_by_week(user_sub: str, agent_key: str, weeks: Sequence[datetime]) -> Rows:
    """Returns the statement for numbers and means of a profile's runs, by week and by whether the run saw a case.

    Columns: ``week`` (number of the week in which the runs were retained, from 1), ``shown`` (a case was shown),
    ``runs`` and ``rewarded`` (numbers), ``reward`` and ``reward_sd`` (mean and standard deviation of the rewards,
    guesses included), ``steps`` and ``steps_sd`` (of the steps), ``errors`` (mean). A run without a retrieve was shown
    no case.

    ``weeks`` are the times at which the weeks begin, rising; the last week goes on until now.
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
    """Returns the statement for the parts that answers of the last ``days`` days lacked because something failed.

    Columns: ``what`` (name of the part that failed), ``decisions`` (number of decisions without it).
    """
    lately = (
        select(func.unnest(decisions.c.degraded).label("what"))
        .where(*_of(user_sub, agent_key), decisions.c.created_at >= func.now() - timedelta(days=days))
        .subquery()
    )
    return select(lately.c.what, func.count().label("decisions")).group_by(lately.c.what).order_by(lately.c.what)


def users() -> Rows:
    """Returns the statement for the numbers of ``users`` and ``profiles``; the connection must be the worker's."""
    return select(func.count(profiles.c.user_sub.distinct()).label("users"), func.count().label("profiles"))


def cases_of_all() -> Rows:
    """Returns the statement for the number of all users' cases, by status; the connection must be the worker's."""
    return select(cases.c.status, func.count().label("cases")).group_by(cases.c.status).order_by(cases.c.status)


def policies_of_all() -> Rows:
    """Returns the statement for the number of all users' policies, by status and last verdict, without users' names.

    Columns: ``status``, ``verdict`` (the gate's; NULL: none yet), ``policies`` (their number), ``decisions`` (mean
    number of decisions from which they were learned). The connection must be the worker's.
    """
    names = column("status", Text), column("verdict", Text), column("policies", BigInteger), column("decisions", Float)
    return select(func.casebank_count_policies().table_valued(*names, name="counted"))


def ratio(part: float, whole: float) -> float | None:
    """Returns a share or a mean as it is shown, with four decimals; None of nothing."""
    return round(part / whole, 4) if whole else None


def _slates(user_sub: str) -> Subquery:
    """Returns a subquery for the ids of the user's decisions that showed a case."""
    slot = decision_slots.c
    return select(slot.decision_id).where(slot.user_sub == user_sub, slot.place == 1).subquery()


def _of(user_sub: str, agent_key: str) -> tuple[ColumnElement[bool], ...]:
    return decisions.c.user_sub == user_sub, decisions.c.agent_key == agent_key, decisions.c.mode != ADVICE
