"""Profiles as upkeep meets them: listed across users by name alone, then taken one at a time as their user."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ScalarSelect, Select, func, literal, or_, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.tables.cases import cases
from retrieval.tables.decisions import decision_slots
from retrieval.tables.profiles import profiles

PAGE = 1_000

_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:user_sub || chr(10) || :agent_key, 1))")


@dataclass(frozen=True, slots=True)
class Profile:
    """One user and one agent, and when the database last knew of them: an erasure since then keeps upkeep out."""

    user_sub: str
    agent_key: str
    seen_at: datetime


async def each_profile(database: Database) -> AsyncIterator[Profile]:
    """Yields every profile of every user, in the order of their keys.

    Raises:
        DatabaseUnavailable: no connection, or it broke.
    """
    after: Profile | None = None
    while True:
        async with database.as_worker() as connection:
            page = [Profile(*row) for row in await connection.execute(_page(after))]
        for profile in page:
            yield profile
        if len(page) < PAGE:
            return
        after = page[-1]


async def lock_profile(connection: AsyncConnection, user_sub: str, agent_key: str) -> None:
    """Waits until this transaction alone makes cases of the profile ready, or merges, prunes or credits them."""
    await connection.execute(_LOCK, {"user_sub": user_sub, "agent_key": agent_key})


async def lock_loop(connection: AsyncConnection, user_sub: str, agent_key: str, decision_id: UUID | None) -> None:
    """Locks the profile of a run and those of all that its retrieval showed or that began with it, in one order.

    They are the same but for a retrieval of all agents.
    """
    shown = select(decision_slots.c.case_id).where(
        decision_slots.c.user_sub == user_sub, decision_slots.c.decision_id == decision_id
    )
    agents = select(cases.c.agent_key).where(
        cases.c.user_sub == user_sub, or_(cases.c.retrieval_id == decision_id, cases.c.id.in_(shown))
    )
    others = (await connection.scalars(agents.distinct())).all() if decision_id else []
    for each in sorted({agent_key, *others}):
        await lock_profile(connection, user_sub, each)


def is_approximate(user_sub: str, agent_key: str) -> ScalarSelect[bool]:
    """Returns what a new vector of the profile has as ``approximate``; hold the profile's lock until it is stored."""
    profile = select(profiles.c.approximate).where(profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key)
    return profile.scalar_subquery()


def _page(after: Profile | None) -> Select[str, str, datetime]:
    # the transaction's start: an erasure that commits later than this statement looks is later than that, too
    statement = select(profiles.c.user_sub, profiles.c.agent_key, func.now().label("seen_at"))
    if after is not None:
        last = tuple_(literal(after.user_sub), literal(after.agent_key))
        statement = statement.where(tuple_(profiles.c.user_sub, profiles.c.agent_key) > last)
    return statement.order_by(profiles.c.user_sub, profiles.c.agent_key).limit(PAGE)
