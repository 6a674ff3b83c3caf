"""Deletes facts or ends them, which takes them out of use."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.facts.listing import holds
from retrieval.tables.memories import facts
from writer.audit import Change, note
from writer.author import Author
from writer.privacy.contexts import forget_contexts
from writer.profiles import lock_profile, lock_profile_of


async def close_fact(connection: AsyncConnection, author: Author, agent_key: str, fact_id: UUID) -> None:
    """Ends a fact now; if an equal fact is stored later, that one holds from its own time on.

    Raises:
        NotFound: the agent has no such fact of the user, or it no longer holds.
    """
    await lock_profile(connection, author.user_sub, agent_key)  # the worker may be about to count the fact again
    mine = facts.c.user_sub == author.user_sub, facts.c.agent_key == agent_key, facts.c.id == fact_id
    ended = update(facts).where(*mine, *holds()).values(valid_to=func.now(), superseded_by=None)
    if (await connection.execute(ended.returning(facts.c.id))).one_or_none() is None:
        raise NotFound("no such fact holds")
    await note(connection, Change.of((author.user_sub, agent_key), author.actor, "close_fact", fact_id))


async def delete_fact(connection: AsyncConnection, author: Author, fact_id: UUID) -> None:
    """Deletes one fact of the user.

    Raises:
        NotFound: the user has no such fact.
    """
    await lock_profile_of(connection, author.user_sub, facts.c.id, fact_id)
    if not await delete_facts(connection, author, facts.c.id == fact_id):
        raise NotFound("no such fact")


async def delete_facts(connection: AsyncConnection, author: Author, *which: ColumnElement[bool]) -> Sequence[UUID]:
    """Deletes the user's facts that match the conditions, one by one, and returns their ids.

    A fact that a deleted fact had closed holds again, until the deleted fact's end. The caller must hold the profile's
    lock: the worker may be about to close such a fact.
    """
    query = select(facts.c.id, facts.c.agent_key).where(facts.c.user_sub == author.user_sub, *which)
    rows = (await connection.execute(query.order_by(facts.c.id).with_for_update())).all()
    for row in rows:
        mine = facts.c.user_sub == author.user_sub
        own_end = select(facts.c.valid_to, facts.c.superseded_by).where(mine, facts.c.id == row.id)
        end = (await connection.execute(own_end)).one()
        closed = update(facts).where(mine, facts.c.superseded_by == row.id)
        await connection.execute(closed.values(valid_to=end.valid_to, superseded_by=end.superseded_by))
        await connection.execute(delete(facts).where(mine, facts.c.id == row.id))
        owner = author.user_sub, row.agent_key
        await note(connection, Change.of(owner, author.actor, "delete_fact", row.id))
    for agent_key, first in {row.agent_key: row.id for row in reversed(rows)}.items():
        await forget_contexts(connection, author.user_sub, agent_key, since=first)
    return [row.id for row in rows]
