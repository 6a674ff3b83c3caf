"""Appends turns to a session, and returns once the turns are on disk."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import uuid_utils.compat as uuids
from sqlalchemy import case, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.tables.sessions import sessions, turns
from writer.audit import note
from writer.author import Author
from writer.errors import IdempotencyConflict, TurnsOutOfOrder, UnknownReference
from writer.memories import remember_turns
from writer.privacy.keys import Keyring
from writer.privacy.names import looks_secret, nameable, unsecret
from writer.privacy.redact import Redaction
from writer.privacy.seal import PayloadTooLarge
from writer.privacy.words import Words
from writer.profiles import open_for_writing
from writer.sessions.lock import Locked, lock_session
from writer.sessions.prepare import PreparedTurns

MOST_TURNS = 10_000
"""Maximum number of turns of a session, equal to that of a run."""
MOST_BYTES = 16 << 20
"""Maximum bytes of all turns of a session as JSON, so that a case can hold them."""
AHEAD = timedelta(minutes=5)
"""Longest accepted time by which a backend's clock is ahead of the database's."""


@dataclass(frozen=True, slots=True)
class AppendedTurns:
    """The result of an append: the numbers of the first and last appended turn, and the number of all turns."""

    first: int
    last: int
    turn_count: int
    redactions: list[Redaction]
    warnings: list[str]


async def append_turns(  # noqa: PLR0913, PLR0917 - retain's own parameters, and the session
    database: Database,
    keyring: Keyring,
    name: str,
    new: PreparedTurns,
    author: Author,
    idempotency_key: str | None = None,
) -> AppendedTurns:
    """Adds the turns to the session of that name and returns their numbers once they are on disk.

    The first turns begin the session. A repeated idempotency key with the same turns returns the same numbers and adds
    no turn.

    Raises:
        IdempotencyConflict: the key was used in this session with other turns.
        MemoryOff: the user switched off writing for this agent.
        TurnsOutOfOrder: a turn is earlier than the turn before it, or in future.
        UnknownReference: the session is another agent's.
        PayloadTooLarge: the session would have more than MOST_TURNS or MOST_BYTES.
        SecretInName: the name of the agent or the session looks like a secret.
        DatabaseUnavailable: nothing was added, or it is unknown whether it was; repeat with the same key.
    """
    nameable(new.agent_key)
    nameable(name, "a session's")
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        words = await keyring.find_or_make(connection, author.user_sub)
        await open_for_writing(connection, author.user_sub, new.agent_key)
        ids = {"user_sub": author.user_sub, "id": uuids.uuid7(), "key_id": words.key_id}
        row = {**ids, "agent_key": new.agent_key, "name": name}
        made = upsert(sessions).values(row).on_conflict_do_nothing(index_elements=["user_sub", "name"])
        begins, session = False, None
        while session is None and not begins:  # whoever held its lock may have deleted it: then it begins anew
            begins = await connection.scalar(made.returning(sessions.c.id)) is not None
            session = await lock_session(connection, author.user_sub, name)
        if session is None:
            raise AssertionError("the session that was just begun is not visible: the transaction is not this user's")
        if session.agent_key != new.agent_key:
            raise UnknownReference("this is a session of another agent")
        call = None
        if idempotency_key is not None:
            names = unsecret(idempotency_key, words) if looks_secret(idempotency_key) else [idempotency_key]
            call = names, words.hash_of_call(new.request_hash)
        if call is not None and (earlier := await _earlier(connection, words, session, call)) is not None:
            first, size = earlier
        else:
            first, size = session.turn_count + 1, len(new.turns)
            await _add(connection, words, session, new, call)
            action = "begin_session" if first == 1 else "append_turns"
            await note(connection, author.change(new.agent_key, action, session.id, first=first, turns=size))
    return AppendedTurns(
        first, first + size - 1, max(session.turn_count, first + size - 1), new.redactions, new.warnings
    )


async def _earlier(
    connection: AsyncConnection, words: Words, session: Locked, call: tuple[list[str], bytes]
) -> tuple[int, int] | None:
    """Returns the first number and the count of the turns that an earlier call with this key added; None: no such call.

    Raises:
        IdempotencyConflict: that call added other turns.
    """
    names, call_hash = call
    mine = turns.c.user_sub == words.user_sub, turns.c.session_id == session.id, turns.c.call_key.in_(names)
    row = (await connection.execute(select(turns.c.number, turns.c.call_hash, turns.c.call_size).where(*mine))).first()
    if row is None:
        return None
    if row.call_hash != call_hash:
        raise IdempotencyConflict("this Idempotency-Key was used before in this session, with other turns")
    return row.number, row.call_size


async def _add(
    connection: AsyncConnection, words: Words, session: Locked, new: PreparedTurns, call: tuple[list[str], bytes] | None
) -> None:
    """Inserts the turns, makes them findable, and queues the session for the worker.

    Raises:
        PayloadTooLarge: the session would have more than MOST_TURNS or MOST_BYTES.
        TurnsOutOfOrder: a turn is earlier than the turn before it, or in future.
    """
    count, size = session.turn_count + len(new.turns), session.turn_bytes + sum(turn.message.size for turn in new.turns)
    if count > MOST_TURNS or size > MOST_BYTES:
        most = f"{MOST_TURNS} turns and {MOST_BYTES} bytes"
        raise PayloadTooLarge(f"the session would have {count} turns and {size} bytes, over {most}: begin another one")
    last = session.last_turn_at if session.turn_count else None
    latest = max(session.now + AHEAD, last or session.now)  # the clock may have been put back since the last turn
    times: list[datetime] = []
    for turn in new.turns:  # a turn without a time is said now
        said_at = turn.said_at or max(session.now, last or session.now)
        if last is not None and said_at < last:
            raise TurnsOutOfOrder(f"a turn of {said_at.isoformat()} comes after one of {last.isoformat()}")
        if said_at > latest:
            raise TurnsOutOfOrder(f"a turn of {said_at.isoformat()} is in future")
        times.append(said_at)
        last = said_at
    rows = [
        {
            "user_sub": words.user_sub,
            "session_id": session.id,
            "number": number,
            "said_at": said_at,
            "utc_offset_min": round((said_at.utcoffset() or timedelta()).total_seconds() / 60),
            "payload": words.seal("turn", turn.message, session.id, number),
            **dict.fromkeys(("call_key", "call_hash", "call_size")),
        }
        for number, (turn, said_at) in enumerate(zip(new.turns, times, strict=True), start=session.turn_count + 1)
    ]
    if call is not None:
        rows[0] |= {"call_key": call[0][0], "call_hash": call[1], "call_size": len(rows)}
    await connection.execute(insert(turns), rows)
    numbered = enumerate((turn.text for turn in new.turns), start=session.turn_count + 1)
    await remember_turns(connection, words.user_sub, new.agent_key, session.id, dict(numbered))
    mine = sessions.c.user_sub == words.user_sub, sessions.c.id == session.id
    last_at = func.greatest(times[-1], sessions.c.last_turn_at) if session.turn_count else times[-1]
    now = {"turn_count": count, "turn_bytes": size, "last_turn_at": last_at}
    # a leased session comes back to the queue by itself, once the worker sees that it has new turns; and one that its
    # worker died with may take the next one down: new turns forget none of these attempts
    is_free = sessions.c.lease_token.is_(None)
    waits = case((is_free, session.now), else_=sessions.c.available_at)
    attempts = case((is_free, 0), else_=sessions.c.attempts)
    queued = {"status": "pending", "attempts": attempts, "available_at": waits}
    await connection.execute(update(sessions).where(*mine).values({**now, **queued}))
