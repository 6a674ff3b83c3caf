"""Decides which cases are proven: a later call of another than the run confirmed the run's own claim.

A run's own word is worth nothing here, whoever wrote it down: neither its outcome, nor a reward that came with it, nor
the same run sent once more, nor another run's guess about itself. All of these cost a forger one request that he may
make up freely. Two things do prove a case:

* **It was judged**: a trusted reward, of a user, a judge or a metric, given to the case by a later call. The newest one
  counts, for the claim or against it, and outweighs all that follows.
* **It was used, and that went well**: of decisions with a trusted reward whose backend said that it used the case, its
  shares earned at least EARNED, and at least half of what they could have. A share is no more here than an even one: to
  do what a case did proves nothing, for a forger writes his plans as he likes. What was merely shown beside proves
  nothing, nor what was tried in vain before another: else whatever is planted would be proven by riding along.

A forger who holds a token that may give trusted rewards can prove his own cases, as its owner could. What helps then is
to let no such token near what he controls: see ``docs/poisoning.md``.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, ScalarSelect, and_, case, false, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.decisions import rewards
from retrieval.tables.kinds import FAILED
from writer.rewards.uses import uses

EARNED = 0.5
"""Trusted reward that the uses of a case must have earned: one use that went well, be it shared with another case."""
HALF = 0.5
"""Lowest reward of a run that went well."""
WITH_THE_RUN = "retain"
"""The actor under which the history of a case begins with the reward that it was retained with."""


async def prove(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Sets anew which of these cases are proven, from the rewards and the log alone; repeating it changes nothing."""
    mine = update(cases).where(cases.c.user_sub == user_sub, cases.c.id.in_(case_ids))
    await connection.execute(mine.values(proven=_proven(user_sub, case_ids)))


def _proven(user_sub: str, case_ids: Sequence[UUID]) -> ColumnElement[bool]:
    judged, used_well = _judged(user_sub), _used_well(user_sub, case_ids)
    as_claimed = (judged >= HALF) != cases.c.outcome.in_(FAILED)
    return case((judged.is_not(None), as_claimed), else_=func.coalesce(used_well, false()))


def _judged(user_sub: str) -> ScalarSelect[float]:
    """The newest trusted reward that a later call gave the case."""
    return (
        select(rewards.c.reward)
        .where(
            rewards.c.user_sub == user_sub,
            rewards.c.case_id == cases.c.id,
            rewards.c.source != "heuristic",
            rewards.c.actor != WITH_THE_RUN,
        )
        .order_by(rewards.c.created_at.desc(), rewards.c.id.desc())
        .limit(1)
        .correlate(cases)
        .scalar_subquery()
    )


def _used_well(user_sub: str, case_ids: Sequence[UUID]) -> ScalarSelect[bool]:
    use = uses(user_sub, case_ids).c
    share = func.least(use.share, use.even)
    earned, count = func.sum(share * use.reward), func.sum(share)
    confirmed = and_(use.used, use.reward.is_not(None), use.reward_source != "heuristic")
    well = select((earned >= EARNED) & (earned >= HALF * count)).where(confirmed, use.case_id == cases.c.id)
    return well.correlate(cases).scalar_subquery()
