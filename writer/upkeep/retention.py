"""Ranks a profile's cases and procedures by their worth, and selects the least worthy beyond the profile's limits."""

from uuid import UUID

from sqlalchemy import CTE, Float, Select, case, cast, func, select

from retrieval.tables.cases import cases
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import profiles
from writer.upkeep.expiry import BATCH, LAST_USED

STALEST = 0.25
"""Freshness of the case that was used longest ago, 0 to 1; the case used last has 1."""


def crowded_out(user_sub: str, agent_key: str) -> Select[UUID]:
    """Returns a statement that selects BATCH ready cases beyond the profile's ``window_size``, worst first."""
    bank = retention(user_sub, agent_key)
    best_first = bank.c.retention.desc(), bank.c.last_used.desc(), bank.c.id.desc()
    ranked = select(bank.c.id, func.row_number().over(order_by=best_first).label("rank")).cte("ranked")
    window = (
        select(profiles.c.window_size)
        .where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
        .scalar_subquery()
    )
    return select(ranked.c.id).where(ranked.c.rank > window).order_by(ranked.c.rank.desc()).limit(BATCH)


def too_many_procedures(user_sub: str, agent_key: str, kept: int) -> Select[UUID]:
    """Returns a statement that selects BATCH procedures beyond the ``kept`` best, the worst first; never a pinned one.

    A procedure's worth is the Beta(1, 1) posterior mean of the rewards of its uses, times its freshness, which is
    computed as for a case, see ``retention``.
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
    """Returns a query of each ready case's id, last_used and retention: above 0, and higher is kept longer.

    ``retention = expected * freshness / (1 + (1 - expected) * ln(frequency)) / copy``, where

    * ``expected``: the Beta(1, 1) posterior mean of the case's own reward and of its reuses' rewards;
    * ``freshness``: 1 for the case that was made or used last, falling evenly by rank towards STALEST. The rank
      counts and not the age, so that a holiday costs no case. A case of a failed run stays about two thirds as long as
      one of a successful run, and a case that keeps helping stays longer than both;
    * ``frequency``: runs merged into the case and reuses; a frequent case with low rewards weighs less, else such cases
      would crowd out the others;
    * ``copy``: 1 for the best of the cases with the same plan and outcome, 2 for the next, … (diversity).
    """
    own = case((cases.c.reward.is_(None), 0.0), else_=1.0)
    earned = func.coalesce(cases.c.reward, 0.0) + cases.c.reuse_reward
    expected = cast(1.0 + earned, Float) / cast(2.0 + own + cases.c.reuse_count, Float)
    newer = func.row_number().over(order_by=(LAST_USED.desc(), cases.c.id.desc())) - 1
    freshness = 1.0 - (1.0 - STALEST) * cast(newer, Float) / cast(func.count().over(), Float)
    swamping = 1.0 + (1.0 - expected) * func.ln(cast(cases.c.occurrences + cases.c.reuse_count, Float))
    # runs without a plan did not do the same: only those of the same words are copies
    planless = case((func.cardinality(cases.c.plan) == 0, cases.c.message_hash))
    before_copies = select(
        cases.c.id,
        cases.c.plan,
        planless.label("planless"),
        cases.c.outcome,
        LAST_USED.label("last_used"),
        (expected * freshness / swamping).label("worth"),
    )
    ready = cases.c.user_sub == user_sub, cases.c.agent_key == agent_key, cases.c.status == "ready"
    worth = before_copies.where(*ready).cte("worth")
    alike = func.row_number().over(
        partition_by=(worth.c.plan, worth.c.planless, worth.c.outcome),
        order_by=(worth.c.worth.desc(), worth.c.last_used.desc(), worth.c.id.desc()),
    )
    return select(worth.c.id, worth.c.last_used, (worth.c.worth / alike).label("retention")).cte("retention")
