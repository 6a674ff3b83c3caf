"""Changes by hand: a case's tags, a case's end, a profile's settings; each noted in the audit."""

from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import delete, func, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningDelete, ReturningUpdate

from retrieval.errors import NotFound
from retrieval.schema import MAX_SEARCH_TEXT_CHARS, cases, profiles
from writer.audit import Change, note
from writer.author import Author
from writer.procedures.case_deletion import forget_sources, forget_words


async def set_tags(connection: AsyncConnection, author: Author, case_id: UUID, tags: list[str]) -> None:
    """Replaces the tags of a case, also where the search looks.

    Raises:
        NotFound: the user has no such case.
    """
    lines = func.concat_ws("\n", cases.c.task, *(func.array_to_string(c, "\n") for c in (cases.c.plan, cases.c.tools)))
    searched = func.left(func.concat_ws("\n", lines, "\n".join(tags)), MAX_SEARCH_TEXT_CHARS)
    changed = (
        update(cases)
        .where(cases.c.user_sub == author.user_sub, cases.c.id == case_id)
        .values(tags=tags, search_text=searched)
        .returning(cases.c.agent_key)
    )
    agent_key = await _found(connection, changed)
    await note(connection, Change.of((author.user_sub, agent_key), author.actor, "update_case", case_id, tags=tags))


async def delete_case(connection: AsyncConnection, author: Author, case_id: UUID) -> None:
    """Deletes a case with its vectors and reward history, and the versions of procedures that are made of its words.

    Raises:
        NotFound: the user has no such case.
    """
    await forget_words(connection, author.user_sub, [case_id])
    await forget_sources(connection, author.user_sub, [case_id])
    gone = delete(cases).where(cases.c.user_sub == author.user_sub, cases.c.id == case_id).returning(cases.c.agent_key)
    agent_key = await _found(connection, gone)
    await note(connection, Change.of((author.user_sub, agent_key), author.actor, "delete_case", case_id))


async def set_profile(
    connection: AsyncConnection, author: Author, agent_key: str, settings: Mapping[str, object]
) -> None:
    """Changes the named settings of a profile; a new agent gets a profile with the defaults for the rest."""
    key = {"user_sub": author.user_sub, "agent_key": agent_key}
    fresh = insert(profiles).values({**key, **settings})
    if settings:
        fresh = fresh.on_conflict_do_update(index_elements=["user_sub", "agent_key"], set_=settings)
    else:
        fresh = fresh.on_conflict_do_nothing()
    await connection.execute(fresh)
    await note(connection, Change.of((author.user_sub, agent_key), author.actor, "update_profile", None, **settings))


async def _found(connection: AsyncConnection, statement: ReturningUpdate[str] | ReturningDelete[str]) -> str:
    agent_key = await connection.scalar(statement)
    if agent_key is None:
        raise NotFound("no such case")
    return str(agent_key)
