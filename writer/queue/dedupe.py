"""Finds repeats: two runs of one profile with the same task and plan become one case with a counter."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Update, exists, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from retrieval.tables.columns import TIME
from retrieval.tables.runs import runs
from writer.queue.case import ClaimedCase
from writer.rewards.repeats import OWN_REWARD, one_more

_ABORTED = runs.c.status == "aborted"


async def twins(connection: AsyncConnection, user_sub: str, batch: Sequence[ClaimedCase]) -> dict[UUID, UUID]:
    """Returns the cases that repeat a ready case or an earlier case of the batch, each with that older case.

    A repeat has the same task and plan: the same numbers and words in the same order. Near vectors are no repeats,
    because "from Anna to Ben" is near "from Ben to Anna". Runs with different outcomes are no repeats either. Nor is an
    aborted run that may go on, because its case is deleted then.
    """
    names = "agent_key", "kind", "outcome", "message_hash"
    may_go_on = exists().where(runs.c.user_sub == user_sub, runs.c.case_id == cases.c.id, _ABORTED)
    ready = select(cases.c.id, cases.c.created_at, *(cases.c[name] for name in names)).where(
        cases.c.user_sub == user_sub,
        cases.c.agent_key.in_({fresh.agent_key for fresh in batch}),
        cases.c.status == "ready",
        cases.c.message_hash.in_({fresh.message_hash for fresh in batch}),
        ~may_go_on,
    )
    apart = set[UUID]()
    if aborted := [fresh.id for fresh in batch if fresh.outcome == "aborted"]:
        theirs = runs.c.user_sub == user_sub, runs.c.case_id.in_(aborted), _ABORTED
        apart.update(await connection.scalars(select(runs.c.case_id).where(*theirs)))
    oldest: dict[tuple[object, ...], tuple[datetime, UUID]] = {}
    kept: dict[UUID, UUID] = {}
    for row in await connection.execute(ready):
        same = tuple(getattr(row, name) for name in names)
        oldest[same] = min(oldest.get(same, (row.created_at, row.id)), (row.created_at, row.id))
    for fresh in batch:
        if fresh.id in apart:
            continue
        same = tuple(getattr(fresh, name) for name in names)
        if same in oldest:
            kept[fresh.id] = oldest[same][1]
        else:
            oldest[same] = fresh.created_at, fresh.id
    return kept


def count_again(user_sub: str, kept: UUID, fresh: ClaimedCase) -> Update:
    """Returns a statement that counts a repeat in the case that it repeats: one occurrence more, its time, the mean."""
    counted: dict[str, object] = {
        "occurrences": cases.c.occurrences + 1,
        "repeated_at": func.greatest(cases.c.repeated_at, literal(fresh.created_at, TIME)),  # greatest ignores NULL
        "last_used_at": func.now(),
        "own_reward": OWN_REWARD,
    }
    if fresh.reward is not None:
        counted |= one_more(fresh.reward, fresh.reward_source)
    return update(cases).where(cases.c.user_sub == user_sub, cases.c.id == kept).values(counted)
