"""Statements that read the log of decisions: a page of the log, and one decision with its runs and rewards."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Column, func, or_, select
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.sql.selectable import LateralFromClause

from retrieval.database.rows import Rows
from retrieval.pages.listing import Span, paged
from retrieval.tables.cases import cases
from retrieval.tables.columns import columns_of
from retrieval.tables.decisions import decision_slots, decisions, rewards
from retrieval.tables.profiles import policies

_LISTED = """
id agent_key query rewritten words mode degraded policy_version arm k slate_propensity tokens reward reward_source
created_at
"""


def page_of_decisions(
    user_sub: str, only: Mapping[str, object], span: Span, *, rewarded: bool | None, before: UUID | None
) -> Rows:
    """Returns the statement for the newest decisions of a span, each with its slate as ``case_ids``.

    ``only`` has, by column, the values that a decision must have; None: any value. ``rewarded``: whether it has a
    reward; None: either.
    """
    page = _with_slots(user_sub, columns_of(decisions, _LISTED)).where(*span.holds(decisions.c.created_at))
    if rewarded is not None:
        page = page.where(decisions.c.reward.is_not(None) == rewarded)
    return paged(page, decisions, only, before, span.most)


def one_decision(user_sub: str, decision_id: UUID) -> Rows:
    """Returns the statement for a decision, with its slate as arrays in the order of places."""
    return _with_slots(user_sub, decisions.c).where(decisions.c.id == decision_id)


def _with_slots(user_sub: str, columns: Iterable[Column[Any]]) -> Rows:
    slots = slots_of(user_sub)
    return (
        select(*columns, *slots.c).outerjoin(slots, decisions.c.id.is_not(None)).where(decisions.c.user_sub == user_sub)
    )


def slots_of(user_sub: str) -> LateralFromClause:
    """Returns a subquery for the slate of a row of ``decisions``: arrays in the order of places, NULL if it is empty.

    Columns: ``case_ids``, ``propensities``, ``used``, ``agreed``, and ``positions``: the positions of the cases among
    the decision's candidates, from 1.
    """
    slot = decision_slots.c
    position = func.array_position(decisions.c.candidate_ids, slot.case_id)
    return (
        select(
            func.array_agg(aggregate_order_by(slot.case_id, slot.place)).label("case_ids"),
            func.array_agg(aggregate_order_by(slot.propensity, slot.place)).label("propensities"),
            func.array_agg(aggregate_order_by(slot.used, slot.place)).label("used"),
            func.array_agg(aggregate_order_by(slot.agreed, slot.place)).label("agreed"),
            func.array_agg(aggregate_order_by(position, slot.place)).label("positions"),
        )
        .where(slot.user_sub == user_sub, slot.decision_id == decisions.c.id)
        .lateral("slots")
    )


def cases_now(user_sub: str, case_ids: Collection[UUID]) -> Rows:
    """Returns the statement for those of the cases that still exist: their words, status and reward."""
    shown = columns_of(cases, "id task plan words status outcome reward reward_source")
    return select(*shown).where(cases.c.user_sub == user_sub, cases.c.id.in_(case_ids))


def runs_of(user_sub: str, decision_id: UUID) -> Rows:
    """Returns the statement for the runs whose agents were shown the decision's context, the oldest first."""
    return (
        select(*columns_of(cases, "id status outcome reward reward_source created_at"))
        .where(cases.c.user_sub == user_sub, cases.c.retrieval_id == decision_id)
        .order_by(cases.c.id)
    )


def rewards_of(user_sub: str, decision_id: UUID) -> Rows:
    """Returns the statement for the rewards of a decision and of its runs, the oldest first."""
    its_runs = select(cases.c.id).where(cases.c.user_sub == user_sub, cases.c.retrieval_id == decision_id)
    return (
        select(rewards.c.case_id, rewards.c.reward, rewards.c.source, rewards.c.actor, rewards.c.created_at)
        .where(rewards.c.user_sub == user_sub)
        .where(or_(rewards.c.decision_id == decision_id, rewards.c.case_id.in_(its_runs)))
        .order_by(rewards.c.id)
    )


def policies_for(user_sub: str, agent_key: str, version: int | None) -> Rows:
    """Returns the statement for the profile's live policies and for its policy of this version, if not None."""
    policy = policies.c
    return (
        select(*columns_of(policies, "version status created_at weights checksum blend"))
        .where(policy.user_sub == user_sub, policy.agent_key == agent_key)
        .where(or_(policy.status.in_(("serving", "candidate")), policy.version == version))
        .order_by(policy.version)
    )
