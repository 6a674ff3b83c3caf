"""Ends facts: an ended fact no longer holds, and stays readable as a former fact."""

from uuid import UUID

from sqlalchemy import func, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.facts.listing import holds
from retrieval.tables.facts import facts
from writer.audit import Change, note
from writer.author import Author


async def close_fact(connection: AsyncConnection, author: Author, agent_key: str, fact_id: UUID) -> None:
    """Ends a fact now; if an equal fact is stored later, that one holds from its own time on.

    Raises:
        NotFound: the agent has no such fact of the user, or it no longer holds.
    """
    mine = facts.c.user_sub == author.user_sub, facts.c.agent_key == agent_key, facts.c.id == fact_id
    ended = update(facts).where(*mine, *holds()).values(valid_to=func.now()).returning(facts.c.id)
    if (await connection.execute(ended)).one_or_none() is None:
        raise NotFound("no such fact holds")
    await note(connection, Change.of((author.user_sub, agent_key), author.actor, "close_fact", fact_id))
