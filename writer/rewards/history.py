"""Stores every reward given to a case or a retrieval, and selects the one that counts."""

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import product
from uuid import UUID

import uuid_utils.compat as uuids
from prometheus_client import Counter
from sqlalchemy import Function, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.tables.cases import cases
from retrieval.tables.columns import ALL_AGENTS
from retrieval.tables.decisions import decision_slots, decisions, rewards
from retrieval.tables.kinds import FAILED_BELOW, RewardSource, is_trusted
from writer.audit import Change, note
from writer.rewards.credit import credit_slate
from writer.rewards.proof import prove
from writer.rewards.repeats import OWN_REWARD, judged

JUDGED = Counter(
    "casebank_cases_judged_total",
    "Cases shown by rewarded decisions: whether the backend named them as used, and whether the reward was good",
    ["use", "reward"],
)
USES = {True: "used", False: "unused", None: "unsaid"}
for _use, _reward in product(USES.values(), ("good", "bad")):
    JUDGED.labels(_use, _reward)  # so that a ratio of them is there before each was met


@dataclass(frozen=True, slots=True)
class Given:
    """A reward given to a case or to a retrieval; exactly one of the two is named."""

    reward: float
    source: RewardSource
    case_id: UUID | None = None
    decision_id: UUID | None = None
    of_run: bool = False
    """True: a retrieval's reward judges only one of the runs that began with it; False: it judges all of them."""


async def add_reward(connection: AsyncConnection, user_sub: str, actor: str, given: Given) -> Given:
    """Adds a reward to the history of its subject (a case or a retrieval), and stores the reward that counts there.

    A retrieval's reward also updates the records of the cases and procedures that it showed; the reward of a merged
    case also updates the case that it was merged into.
    Returns the reward that counts now, which may be an older one, if that is from a better source.

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
    if given.case_id and row.reward is not None:
        known = select(rewards.c.id).where(rewards.c.user_sub == user_sub, rewards.c.case_id == given.case_id).limit(1)
        if not await connection.scalar(known):  # the history of a case begins with the reward it was retained with
            first = replace(given, reward=row.reward, source=row.reward_source)
            await _add(connection, user_sub, "retain", first, row.created_at)
    # not the transaction's start: of two that overlap, the one that got the row lock last is the newer
    await _add(connection, user_sub, actor, given, func.clock_timestamp())
    if given.case_id and row.reward is not None and is_trusted(row.reward_source) and not is_trusted(given.source):
        # the reward may be a mean over repeats, which the history does not have: a guess must not undo it
        counts = replace(given, reward=row.reward, source=row.reward_source)
    else:
        counts = await _settle(connection, user_sub, given)
    if given.decision_id and row.reward is None:
        slot = decision_slots.c
        shown = select(slot.used).where(slot.user_sub == user_sub, slot.decision_id == given.decision_id)
        for used in (await connection.scalars(shown.order_by(slot.place))).all():
            JUDGED.labels(USES[used], "bad" if counts.reward < FAILED_BELOW else "good").inc()
    if given.case_id:
        await prove(connection, user_sub, [given.case_id])
    payload = {"reward": given.reward, "source": given.source}
    agent_key = None if row.agent_key == ALL_AGENTS else row.agent_key
    change = Change.of((user_sub, agent_key), actor, "reward", subject, **payload)
    await note(connection, change)
    return counts


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
    """Stores the reward that counts in the row of the case or the retrieval, updates what follows, and returns it.

    The newest reward of a trusted source counts, else the newest of all: a heuristic reward is a guess by rule, which a
    reward of a user, a judge or a metric outweighs, even an older one.
    """
    subject = rewards.c.case_id == given.case_id if given.case_id else rewards.c.decision_id == given.decision_id
    by_weight = (rewards.c.source == "heuristic").asc(), rewards.c.created_at.desc(), rewards.c.id.desc()
    history = select(rewards.c.reward, rewards.c.source).where(rewards.c.user_sub == user_sub, subject)
    newest = (await connection.execute(history.order_by(*by_weight).limit(1))).one()
    counts = replace(given, reward=newest.reward, source=newest.source)
    if given.case_id:
        mine = cases.c.user_sub == user_sub, cases.c.id == given.case_id
        own = OWN_REWARD.label("reward")
        before = (await connection.execute(select(own, cases.c.merged_into).where(*mine))).one()
        row: dict[str, object] = {"reward": counts.reward, "trusted_runs": 0}
        if is_trusted(counts.source):
            row = judged(counts.reward, counts.source, before.reward) | {"own_reward": counts.reward}
        await connection.execute(update(cases).where(*mine).values(row | {"reward_source": counts.source}))
        if before.merged_into is not None and is_trusted(counts.source):
            kept = update(cases).where(cases.c.user_sub == user_sub, cases.c.id == before.merged_into)
            await connection.execute(kept.values(judged(counts.reward, counts.source, before.reward)))
            await prove(connection, user_sub, [before.merged_into])
    if given.decision_id:
        mine = decisions.c.user_sub == user_sub, decisions.c.id == given.decision_id
        values = {"reward": counts.reward, "reward_source": counts.source}
        await connection.execute(update(decisions).where(*mine).values(values))
        await credit_slate(connection, user_sub, given.decision_id)
    return counts
