"""Decides which cases are proven: a later call, not the run itself, confirmed that the run went as it claims.

A run's own claim proves no case: neither its outcome, nor a reward that came with it, nor the same run sent once more,
nor another run's guess about itself. Each of these costs a forger one request with invented contents. Two things prove
a case:

* **It was judged**: a later call gave the case a trusted reward, of a user, a judge or a metric. The newest such reward
  counts, for the claim or against it, and outweighs the uses below.
* **It was used, and that went well**: over the retrievals with a trusted reward whose backend said that it used the
  case, the case's shares earned at least EARNED, and at least half of the most they could earn. A share counts up to
  an even split: a run that agrees with the case's plan proves nothing, because a forger writes plans as he likes. A
  case that was shown and not used earns nothing, else a planted case would be proven by the success of others.

A forger with a token that may give trusted rewards can prove his own cases, as the token's owner could. Keep such
tokens away from agents that others can influence: see ``docs/poisoning.md``.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import and_, case, false, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.decisions import rewards
from retrieval.tables.kinds import FAILED
from writer.rewards.uses import uses

EARNED = 0.5
"""Least trusted reward that the uses of a case must earn: one use that went well, even if shared with another case."""
HALF = 0.5
"""Lowest reward of a run that went well."""
WITH_THE_RUN = "retain"
"""Actor of a reward that came with the run itself, in the history of a case's rewards."""


async def prove(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Recomputes which of these cases are proven by the two rules of this module; repeating it changes nothing."""
    judged = (  # the newest trusted reward that a later call gave the case
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
    as_claimed = (judged >= HALF) != cases.c.outcome.in_(FAILED)
    use = uses(user_sub, case_ids).c
    share = func.least(use.share, use.even)
    earned, count = func.sum(share * use.reward), func.sum(share)
    confirmed = and_(use.used, use.reward.is_not(None), use.reward_source != "heuristic")
    well = select((earned >= EARNED) & (earned >= HALF * count)).where(confirmed, use.case_id == cases.c.id)
    used_well = well.correlate(cases).scalar_subquery()
    proven = case((judged.is_not(None), as_claimed), else_=func.coalesce(used_well, false()))
    mine = update(cases).where(cases.c.user_sub == user_sub, cases.c.id.in_(case_ids))
    await connection.execute(mine.values(proven=proven))
