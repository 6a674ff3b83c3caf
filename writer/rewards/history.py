"""Keeps the rewards of a case or a retrieval, and finds the one that counts."""

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from uuid import UUID

import uuid_utils.compat as uuids
from sqlalchemy import Function, Row, Select, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.tables.cases import cases
from retrieval.tables.columns import ALL_AGENTS
from retrieval.tables.decisions import decisions, rewards
from retrieval.tables.kinds import RewardSource, is_trusted
from writer.audit import Change, note
from writer.rewards.credit import credit_slate
from writer.rewards.metrics import count_judged
from writer.rewards.proof import WITH_THE_RUN, prove
from writer.rewards.repeats import judged_again


@dataclass(frozen=True, slots=True)
class Given:
    """A reward for a case or for a retrieval; exactly one of the two is named."""

    reward: float
    source: RewardSource
    case_id: UUID | None = None
    decision_id: UUID | None = None
    of_run: bool = False
    """True: a reward of a retrieval judges one of its runs, and not all that began with it."""


def effective_reward(user_sub: str, *, case_id: UUID | None, decision_id: UUID | None) -> Select[float, str]:
    """Returns the statement for the reward that counts: the newest of a trusted source, else the newest of all.

    A heuristic is a guess by rule; whatever a user, a judge or a metric said outweighs it, however old.
    """
    subject = rewards.c.case_id == case_id if case_id else rewards.c.decision_id == decision_id
    return (
        select(rewards.c.reward, rewards.c.source)
        .where(rewards.c.user_sub == user_sub, subject)
        .order_by((rewards.c.source == "heuristic").asc(), rewards.c.created_at.desc(), rewards.c.id.desc())
        .limit(1)
    )


async def add_reward(connection: AsyncConnection, user_sub: str, actor: str, given: Given) -> Given:
    """Adds the reward to the history and puts the one that counts on its subject, which passes it on.

    A retrieval's reward is the record of what was shown; a merged run's is part of its kept case's.
    Returns the reward that counts now, which may be an older one of a better source.

    Raises:
        NotFound: the user has no such case or retrieval.
    """
    table, subject = (cases, given.case_id) if given.case_id else (decisions, given.decision_id)
    statement = (
        select(table.c.agent_key, table.c.reward, table.c.reward_source, table.c.created_at)
        .where(table.c.user_sub == user_sub, table.c.id == subject)
        .with_for_update()
    )
    row = (await connection.execute(statement)).one_or_none()
    if row is None or subject is None:
        raise NotFound("no such case or retrieval")
    await _remember_first(connection, user_sub, given, row)
    # not the transaction's start: of two that overlap, the one that got the row lock last is the newer
    await _add(connection, user_sub, actor, given, func.clock_timestamp())
    if given.case_id and row.reward is not None and is_trusted(row.reward_source) and not is_trusted(given.source):
        # the reward may be a mean over repeats, which the history does not have: a guess must not undo it
        counts = replace(given, reward=row.reward, source=row.reward_source)
    else:
        counts = await _settle(connection, user_sub, given)
    if given.decision_id and row.reward is None:
        await count_judged(connection, user_sub, given.decision_id, counts.reward)
    if given.case_id:
        await prove(connection, user_sub, [given.case_id])
    payload = {"reward": given.reward, "source": given.source}
    agent_key = None if row.agent_key == ALL_AGENTS else row.agent_key
    change = Change.of((user_sub, agent_key), actor, "reward", subject, **payload)
    await note(connection, change)
    return counts


async def _remember_first(
    connection: AsyncConnection,
    user_sub: str,
    given: Given,
    row: Row[str, float | None, str | None, datetime],
) -> None:
    """Begins the history of a case with the reward it was retained with."""
    known = select(rewards.c.id).where(rewards.c.user_sub == user_sub, rewards.c.case_id == given.case_id).limit(1)
    if given.case_id is None or row.reward is None or await connection.scalar(known):
        return
    first = replace(given, reward=row.reward, source=row.reward_source)
    await _add(connection, user_sub, WITH_THE_RUN, first, row.created_at)


async def _add(
    connection: AsyncConnection,
    user_sub: str,
    actor: str,
    given: Given,
    at: datetime | Function[datetime],
) -> None:
    row = {"user_sub": user_sub, "id": uuids.uuid7(), "actor": actor, "created_at": at, **asdict(given)}
    await connection.execute(insert(rewards).values(row))


async def _settle(connection: AsyncConnection, user_sub: str, given: Given) -> Given:
    """Puts the reward that counts on the case or the decision, and returns it."""
    statement = effective_reward(user_sub, case_id=given.case_id, decision_id=given.decision_id)
    newest: Row[float, str] = (await connection.execute(statement)).one()
    counts = replace(given, reward=newest.reward, source=newest.source)
    if given.case_id:
        await _put_on_case(connection, user_sub, given.case_id, counts)
    if given.decision_id:
        mine = decisions.c.user_sub == user_sub, decisions.c.id == given.decision_id
        values = {"reward": counts.reward, "reward_source": counts.source}
        await connection.execute(update(decisions).where(*mine).values(values))
        await credit_slate(connection, user_sub, given.decision_id)
    return counts


async def _put_on_case(connection: AsyncConnection, user_sub: str, case_id: UUID, counts: Given) -> None:
    mine = cases.c.user_sub == user_sub, cases.c.id == case_id
    before = (
        await connection.execute(select(cases.c.reward, cases.c.reward_source, cases.c.merged_into).where(*mine))
    ).one()
    # one statement about the case, in place of the mean over its repeats: the next repeat weighs as much
    values = {"reward": counts.reward, "reward_source": counts.source, "trusted_runs": int(is_trusted(counts.source))}
    await connection.execute(update(cases).where(*mine).values(values))
    if before.merged_into is not None and is_trusted(counts.source):
        kept = update(cases).where(cases.c.user_sub == user_sub, cases.c.id == before.merged_into)
        again = judged_again(counts.reward, counts.source, before.reward, before.reward_source)
        await connection.execute(kept.values(again))
