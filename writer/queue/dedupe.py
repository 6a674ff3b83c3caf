"""Repeats: two runs of one profile that did the same for the same task become one case with a counter."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Update, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.tables.cases import cases
from writer.queue.case import ClaimedCase
from writer.rewards.repeats import one_more


async def twins(connection: AsyncConnection, user_sub: str, batch: Sequence[ClaimedCase]) -> dict[UUID, UUID]:
    """Returns which of the fresh cases repeat a ready one, or an earlier one of the batch, and the case repeated.

    A case is repeated by one with the same task and plan: the same numbers and words in the same order. Near vectors
    merge nothing, for "from Anna to Ben" is near "from Ben to Anna". Only runs with the same outcome merge: a failure
    beside a success is news. Older cases win over newer ones.

    Args:
        connection: a transaction of the owner that holds the locks of the cases' profiles.
        user_sub: the owner of all.
        batch: the cases that the worker is about to finish, in the order of retaining.
    """
    names = "agent_key", "kind", "outcome", "message_hash"
    ready = select(cases.c.id, cases.c.created_at, *(cases.c[name] for name in names)).where(
        cases.c.user_sub == user_sub,
        cases.c.agent_key.in_({fresh.agent_key for fresh in batch}),
        cases.c.status == "ready",
        cases.c.message_hash.in_({fresh.message_hash for fresh in batch}),
    )
    oldest: dict[tuple[object, ...], tuple[datetime, UUID]] = {}
    kept: dict[UUID, UUID] = {}
    for row in await connection.execute(ready):
        same = tuple(getattr(row, name) for name in names)
        oldest[same] = min(oldest.get(same, (row.created_at, row.id)), (row.created_at, row.id))
    for fresh in batch:
        same = tuple(getattr(fresh, name) for name in names)
        if same in oldest:
            kept[fresh.id] = oldest[same][1]
        else:
            oldest[same] = fresh.created_at, fresh.id
    return kept


def count_again(user_sub: str, kept: UUID, fresh: ClaimedCase) -> Update:
    """Returns a statement that adds the fresh case's run to the kept case: one more occurrence, and the mean reward."""
    counted: dict[str, object] = {"occurrences": cases.c.occurrences + 1, "last_used_at": func.now()}
    if fresh.reward is not None:
        counted |= one_more(fresh.reward, fresh.reward_source)
    return update(cases).where(cases.c.user_sub == user_sub, cases.c.id == kept).values(counted)
