"""Decides which cases are proven: a later call, not the run itself, confirmed that the run went as it claims.

A run's own claim proves no case: neither its outcome, nor a reward that came with it, nor the same run sent once more,
nor another run's guess about itself. Each of these costs a forger one request with invented contents. Two things prove
a case:

* **It was judged**: a later call gave the case, or a repeat that was merged into it, a trusted reward, of a user, a
  judge or a metric. The newest such reward counts, for the claim or against it, and outweighs the uses below.
* **It was used, and that went well**: over the retrievals with a trusted reward whose backend said that it used the
  case, the case's shares earned at least EARNED, and at least half of the most they could earn. A share counts up to
  an even split: a run that agrees with the case's plan is no proof, because a forger writes plans as he likes. A
  case that was shown and not used earns no reward, else a planted case would be proven by the success of others. Uses
  count after pruning has deleted their decisions, too, see ``writer.rewards.credit.keep_credit``.

A forger with a token that may give trusted rewards can prove his own cases, as the token's owner could. Keep such
tokens away from agents that others can influence: see ``docs/poisoning.md``.
"""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Subquery, and_, case, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.decisions import rewards
from retrieval.tables.kinds import FAILED
from writer.rewards.uses import showed, uses

EARNED = 0.5
"""Least trusted reward that the uses of a case must earn: one use that went well, even if shared with another case."""
HALF = 0.5
"""Lowest reward of a run that went well."""


async def prove(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Recomputes which of these cases are proven by the two rules of this module; repeating it changes nothing."""
    run = cases.alias("run")
    judged = (  # the newest trusted reward that a later call gave the case or one of its repeats
        select(rewards.c.reward)
        .join(run, and_(run.c.user_sub == rewards.c.user_sub, run.c.id == rewards.c.case_id))
        .where(
            rewards.c.user_sub == user_sub,
            run.c.user_sub == user_sub,
            or_(run.c.id == cases.c.id, run.c.merged_into == cases.c.id),
            *_judges(run),
        )
        .order_by(rewards.c.created_at.desc(), rewards.c.id.desc())
        .limit(1)
        .correlate(cases)
        .scalar_subquery()
    )
    as_claimed = (judged >= HALF) != cases.c.outcome.in_(FAILED)
    use = uses(user_sub, showed(user_sub, case_ids))
    logged, logged_earned = confirmed_uses(use)
    count, earned = cases.c.kept_confirmed + logged, cases.c.kept_earned + logged_earned
    well = select((earned >= EARNED) & (earned >= HALF * count)).where(use.c.case_id == cases.c.id)
    used_well = well.correlate(cases).scalar_subquery()
    proven = case((judged.is_not(None), as_claimed), else_=used_well)
    mine = update(cases).where(cases.c.user_sub == user_sub, cases.c.id.in_(case_ids))
    await connection.execute(mine.values(proven=proven))


async def keep_judgements(connection: AsyncConnection, user_sub: str, case_ids: Sequence[UUID]) -> None:
    """Moves the judgements of merged repeats to the cases that they were merged into; call it before the deletion."""
    run, kept = cases.alias("run"), cases.alias("kept")
    judgements = update(rewards).where(
        rewards.c.user_sub == user_sub,
        run.c.user_sub == user_sub,
        kept.c.user_sub == user_sub,
        run.c.id.in_(case_ids),
        rewards.c.case_id == run.c.id,
        kept.c.id == run.c.merged_into,
        *_judges(run),
    )
    await connection.execute(judgements.values(case_id=kept.c.id))


def _judges(run: FromClause) -> tuple[ColumnElement[bool], ...]:
    """Returns conditions on a reward of a run: it is trusted, and came after the run, whose time it would have.

    The reward's actor does not tell: a user may have any name, and an erasure changes it.
    """
    return rewards.c.source != "heuristic", rewards.c.created_at != run.c.created_at


def confirmed_uses(rows: Subquery) -> tuple[ColumnElement[float], ColumnElement[float]]:
    """Returns two sums over the uses that may prove a case: their shares, and the reward that these earned.

    ``rows`` are rows of ``writer.rewards.uses.uses``; without such uses both sums are 0.
    """
    use = rows.c
    share = func.least(use.share, use.even)
    confirmed = and_(use.used, use.reward.is_not(None), use.reward_source != "heuristic")
    shares, earned = (func.sum(each).filter(confirmed) for each in (share, share * use.reward))
    return func.coalesce(shares, 0.0), func.coalesce(earned, 0.0)
