"""Profiles, the settings of one user for one agent: lists all for upkeep, and locks one while its cases change."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Column, Select, exists, func, literal, or_, select, text, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.errors import UserErased
from retrieval.tables.cases import cases
from retrieval.tables.columns import ALL_AGENTS
from retrieval.tables.decisions import decision_slots
from retrieval.tables.keys import user_keys
from retrieval.tables.profiles import profiles
from retrieval.telemetry import log
from writer.errors import MemoryOff

PAGE = 1_000
"""Number of profiles that one statement reads."""

_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:user_sub || chr(10) || :agent_key, 1))")


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile's key, and the time at which it was read.

    Attributes:
        seen_at: the time by the database's clock. Work that began before the user was erased is refused by it.
    """

    user_sub: str
    agent_key: str
    seen_at: datetime


async def each_profile(database: Database) -> AsyncIterator[Profile]:
    """Yields every profile of every user, in the order of their keys."""
    key = profiles.c.user_sub, profiles.c.agent_key
    async for profile in _in_pages(database, select(*key), *key):
        yield profile


async def each_owner(database: Database) -> AsyncIterator[Profile]:
    """Yields every profile, and then every user who has none, with ALL_AGENTS as agent: one who only searched."""
    async for profile in each_profile(database):
        yield profile
    has_profile = exists(profiles.c.user_sub).where(profiles.c.user_sub == user_keys.c.user_sub)
    without = select(user_keys.c.user_sub, literal(ALL_AGENTS)).where(~has_profile)
    async for user in _in_pages(database, without, user_keys.c.user_sub):
        yield user


async def _in_pages(database: Database, owners: Select[str, str], *key: Column[str]) -> AsyncIterator[Profile]:
    """Yields users with their agents in the order of ``key``, which is the user, or the user and the agent."""
    listed = owners.add_columns(func.now())  # the transaction's start: an erasure that commits later is later than that
    after: tuple[str, ...] = ()
    while True:
        async with database.as_worker() as connection:
            rest = listed.where(tuple_(*key) > tuple_(*map(literal, after))) if after else listed
            page = [Profile(*row) for row in await connection.execute(rest.order_by(*key).limit(PAGE))]
        for profile in page:
            yield profile
        if len(page) < PAGE:
            return
        after = (page[-1].user_sub, page[-1].agent_key)[: len(key)]


async def each_of(profiles: Iterable[Profile]) -> AsyncIterator[Profile]:
    """Yields these profiles, in their order."""
    for profile in profiles:
        yield profile


Result = TypeVar("Result")


async def in_every_profile(
    database: Database,
    work: Callable[[Profile], Awaitable[Result]],
    owners: AsyncIterator[Profile] | None = None,
) -> AsyncIterator[Result]:
    """Does the work in every profile, or for these owners, and yields the results; one that fails stops no other.

    A profile whose user was erased meanwhile is passed over.

    Raises:
        DatabaseUnavailable: the database does not answer.
        Exception: after the last profile: the first error of the work.
    """
    failed: Exception | None = None
    async for profile in each_profile(database) if owners is None else owners:
        try:
            result = await work(profile)
        except UserErased:
            continue
        except Exception as error:  # noqa: BLE001 - it is raised once the others had their turn
            log.warning("profile.failed", error=type(error).__name__)
            failed = failed or error
            async with database.as_worker():  # it raises if nothing is to be had from the database
                continue
        yield result
    if failed is not None:
        raise failed


async def open_for_writing(connection: AsyncConnection, user_sub: str, agent_key: str) -> None:
    """Makes the agent's profile if it is missing, and checks that memory may be written for the agent.

    A transaction that locks the profile, too, does so before: another one that holds the lock may wait for a new
    profile.

    Raises:
        MemoryOff: the user switched off writing for this agent.
    """
    await connection.execute(insert(profiles).values(user_sub=user_sub, agent_key=agent_key).on_conflict_do_nothing())
    mine = profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key
    if not await connection.scalar(select(profiles.c.writing).where(*mine)):
        raise MemoryOff


async def lock_profile(connection: AsyncConnection, user_sub: str, agent_key: str) -> None:
    """Locks a profile for this transaction: call it before making, merging or crediting the profile's cases."""
    await connection.execute(_LOCK, {"user_sub": user_sub, "agent_key": agent_key})


async def lock_profile_of(connection: AsyncConnection, user_sub: str, row: Column[Any], value: object) -> None:
    """Locks the profile of one of the user's rows, whose column ``row`` has this value: call it before deleting it."""
    table = row.table
    agent_key = select(table.c.agent_key).where(table.c.user_sub == user_sub, row == value)
    await lock_profile(connection, user_sub, await connection.scalar(agent_key) or "")


async def lock_loop(
    connection: AsyncConnection, user_sub: str, agent_keys: Collection[str], decision_ids: Collection[UUID]
) -> None:
    """Locks the profiles that a reward can change: those of the agents, of the shown cases and of the retrievals' runs.

    For one run this is one profile, unless the retrieval searched the cases of all agents. The order of the locks is
    fixed, so two transactions cannot deadlock.
    """
    keys = set(agent_keys)
    if decision_ids:
        shown = select(decision_slots.c.case_id).where(
            decision_slots.c.user_sub == user_sub, decision_slots.c.decision_id.in_(decision_ids)
        )
        agents = select(cases.c.agent_key).where(
            cases.c.user_sub == user_sub, or_(cases.c.retrieval_id.in_(decision_ids), cases.c.id.in_(shown))
        )
        keys.update(await connection.scalars(agents.distinct()))
    for each in sorted(keys):
        await lock_profile(connection, user_sub, each)
