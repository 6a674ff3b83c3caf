"""Deletes facts or ends them, which takes them out of use."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, Uuid, any_, bindparam, delete, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.pages.memories import holds
from retrieval.tables.memories import facts
from writer.audit import note
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
    await note(connection, author.change(agent_key, "close_fact", fact_id))


async def delete_fact(connection: AsyncConnection, author: Author, fact_id: UUID) -> None:
    """Deletes one fact of the user.

    Raises:
        NotFound: the user has no such fact.
    """
    await lock_profile_of(connection, author.user_sub, facts.c.id, fact_id)
    if not await delete_facts(connection, author, facts.c.id == fact_id):
        raise NotFound("no such fact")


async def delete_facts(connection: AsyncConnection, author: Author, *which: ColumnElement[bool]) -> Sequence[UUID]:
    """Deletes the user's facts that match the conditions, and returns their ids.

    A fact that a deleted fact had closed holds again, until the deleted fact's end. The caller must hold the profile's
    lock: the worker may be about to close such a fact.
    """
    mine = facts.c.user_sub == author.user_sub
    columns = facts.c.id, facts.c.agent_key, facts.c.valid_to, facts.c.superseded_by
    query = select(*columns).where(mine, *which).order_by(facts.c.id).with_for_update()
    gone = {row.id: row for row in await connection.execute(query)}
    if not gone:
        return []
    those = any_(literal(list(gone), ARRAY(Uuid)))
    reopened = []
    for row in await connection.execute(select(*columns).where(mine, facts.c.superseded_by == those)):
        end = row
        while end.superseded_by in gone:  # the deleted fact may have been closed by another deleted one
            end = gone[end.superseded_by]
        reopened.append({"fact_id": row.id, "end": end.valid_to, "by": end.superseded_by})
    if reopened:
        held = update(facts).where(mine, facts.c.id == bindparam("fact_id"))
        await connection.execute(held.values(valid_to=bindparam("end"), superseded_by=bindparam("by")), reopened)
    await connection.execute(delete(facts).where(mine, facts.c.id == those))
    await note(connection, *(author.change(row.agent_key, "delete_fact", row.id) for row in gone.values()))
    for agent_key, first in {row.agent_key: row.id for row in reversed(gone.values())}.items():
        await forget_contexts(connection, author.user_sub, agent_key, since=first)
    return list(gone)
