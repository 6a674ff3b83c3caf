"""Locks a session for the rest of a transaction: to append to it, to take its turns for a run, or to delete it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.rows import AnyRow, Rows
from retrieval.errors import NotFound, SealBroken
from retrieval.sessions.messages import SessionTurn
from retrieval.tables.failures import advice
from retrieval.tables.memories import facts
from retrieval.tables.sessions import sessions, turns
from writer.audit import note
from writer.author import Author
from writer.facts.remove import delete_facts
from writer.privacy.contexts import forget_advice, forget_contexts
from writer.privacy.words import Words, readable
from writer.profiles import lock_profile_of
from writer.references import clear_references


@dataclass(frozen=True, slots=True)
class Locked:
    """A session that the current transaction has locked.

    Attributes:
        taken_turns: the number of the last turn that became part of a run.
        now: the time of the transaction, by the database's clock.
    """

    id: UUID
    agent_key: str
    turn_count: int
    turn_bytes: int
    taken_turns: int
    last_turn_at: datetime
    now: datetime


async def lock_session(connection: AsyncConnection, user_sub: str, name: str) -> Locked | None:
    """Returns the session, locked until the transaction ends; None: the user has no such session."""
    columns = [func.now() if each.name == "now" else sessions.c[each.name] for each in fields(Locked)]
    mine = select(*columns).where(sessions.c.user_sub == user_sub, sessions.c.name == name)
    row = (await connection.execute(mine.with_for_update())).one_or_none()
    return None if row is None else Locked(*row)


async def turns_to_take(connection: AsyncConnection, words: Words, session: Locked) -> Sequence[dict[str, Any]]:
    """Returns the messages of the session's turns that are part of no run yet, in their order.

    A turn that does not decrypt is left out: the run is not lost with it.
    """
    rows = (await connection.execute(turns_after(words.user_sub, session.id, session.taken_turns))).all()
    opened = readable(lambda row: words.open("turn", row.payload, session.id, row.number), rows)
    return await asyncio.to_thread(list, opened)  # may be 16 MB, or 10,000 turns


def turns_after(user_sub: str, session_id: UUID, number: int) -> Rows:
    """Returns a statement that selects a session's encrypted turns with numbers above `number`, in their order."""
    return (
        select(turns.c.number, turns.c.said_at, turns.c.utc_offset_min, turns.c.payload)
        .where(turns.c.user_sub == user_sub, turns.c.session_id == session_id, turns.c.number > number)
        .order_by(turns.c.number)
    )


def turns_in(words: Words, session_id: UUID, rows: Sequence[AnyRow]) -> list[SessionTurn]:
    """Returns the turns in rows of ``turns_after``, decrypted, each with its time in the time zone of the backend.

    Turns that do not decrypt are left out. Call it in a thread: 200 turns may have 16 MB.

    Raises:
        SealBroken: none of the turns decrypts.
    """

    def opened(row: AnyRow) -> SessionTurn:
        said_at = row.said_at.astimezone(timezone(timedelta(minutes=row.utc_offset_min)))
        return SessionTurn(row.number, said_at, words.open("turn", row.payload, session_id, row.number))

    turns = list(readable(opened, rows))
    if rows and not turns:
        raise SealBroken("no turn of the session decrypts")
    return turns


async def mark_taken(connection: AsyncConnection, user_sub: str, session: Locked) -> None:
    """Marks every turn of the session as part of a run, so that the next run does not take it again."""
    mine = sessions.c.user_sub == user_sub, sessions.c.id == session.id
    await connection.execute(update(sessions).where(*mine).values(taken_turns=session.turn_count))


async def delete_session(connection: AsyncConnection, author: Author, name: str) -> None:
    """Deletes a session with its turns and the facts first told there; its runs stay, with copies of their turns.

    Raises:
        NotFound: the user has no such session.
    """
    # the worker that stores the session's facts locks both in this order
    await lock_profile_of(connection, author.user_sub, sessions.c.name, name)
    session = await lock_session(connection, author.user_sub, name)
    if session is None:
        raise NotFound("no such session")
    await delete_facts(connection, author, facts.c.session_id == session.id)
    await forget_advice(connection, author.user_sub, advice.c.session_id == session.id)
    await clear_references(sessions, connection, author.user_sub, [session.id])
    await connection.execute(
        delete(sessions).where(sessions.c.user_sub == author.user_sub, sessions.c.id == session.id)
    )
    await forget_contexts(connection, author.user_sub, session.agent_key, since=session.id)
    await note(connection, author.change(session.agent_key, "delete_session", session.id))
