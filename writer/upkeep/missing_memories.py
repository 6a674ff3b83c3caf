"""Adds the missing memories (search entries) of turns and facts that were stored before recall existed.

New turns and facts get their memory in the transaction that stores them. The worker adds the vectors, as for all
memories.
"""

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

from sqlalchemy import and_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import UserErased
from retrieval.tables.facts import facts
from retrieval.tables.memories import memories
from retrieval.tables.sessions import sessions, turns
from retrieval.telemetry import log
from writer.memories import remember_facts, remember_turns, text_of_turn
from writer.privacy.keys import Keyring
from writer.privacy.seal import SealBroken
from writer.privacy.words import Words
from writer.profiles import Profile, each_profile, lock_profile

BATCH = 256
"""Maximum number of turns or facts of one transaction."""

Progress = Callable[[int], object]
"""A callback that gets the number of turns or facts of each transaction."""


async def remember_all(database: Database, keyring: Keyring, *, progress: Progress = lambda _count: None) -> int:
    """Inserts the missing memories of every profile's turns and facts; returns how many.

    A call that was interrupted can be repeated and goes on where it stopped. Calls at the same time take turns.

    Raises:
        DatabaseUnavailable: the memories inserted so far stay.
    """
    total = 0
    async for profile in each_profile(database):
        with suppress(UserErased):
            try:
                total += await _turns(database, keyring, profile, progress)
                total += await _facts(database, keyring, profile, progress)
            except SealBroken:  # one user's broken key is a matter of that user
                log.warning("backfill.refused", why="a user's key does not open")
    return total


async def _turns(database: Database, keyring: Keyring, profile: Profile, progress: Progress) -> int:
    """Inserts the missing memories of the profile's turns; returns how many."""
    done = 0
    after: tuple[UUID, int] | None = None
    while True:
        async with database.as_user(profile.user_sub, profile.seen_at) as connection:
            await lock_profile(connection, profile.user_sub, profile.agent_key)
            rows = (await connection.execute(unremembered_turns(profile, after))).all()
            if not rows:
                return done
            words = await _words(connection, keyring, profile)
            texts: dict[UUID, dict[int, str]] = {}
            for row in rows:
                message = words.open_turn(row.session_id, row.number, row.payload)
                texts.setdefault(row.session_id, {})[row.number] = text_of_turn(message)
            for session_id, numbered in texts.items():
                await remember_turns(connection, profile.user_sub, profile.agent_key, session_id, numbered)
        done += sum(bool(text) for numbered in texts.values() for text in numbered.values())
        after = rows[-1].session_id, rows[-1].number  # turns without a text get no memory, and are passed over
        progress(len(rows))


async def _facts(database: Database, keyring: Keyring, profile: Profile, progress: Progress) -> int:
    """Inserts the missing memories of the profile's facts; returns how many."""
    done = 0
    while True:
        async with database.as_user(profile.user_sub, profile.seen_at) as connection:
            await lock_profile(connection, profile.user_sub, profile.agent_key)
            rows = (await connection.execute(unremembered_facts(profile))).all()
            if not rows:
                return done
            words = await _words(connection, keyring, profile)
            for row in rows:
                text = words.open_fact(row.id, row.words)["text"]
                await remember_facts(connection, profile.user_sub, [(profile.agent_key, row.id, text)])
        done += len(rows)
        progress(len(rows))


async def _words(connection: AsyncConnection, keyring: Keyring, profile: Profile) -> Words:
    return Words(profile.user_sub, await keyring.find_or_make(connection, profile.user_sub))


def unremembered_turns(profile: Profile, after: tuple[UUID, int] | None) -> Rows:
    """Returns a statement that selects the next BATCH turns of the profile without a memory.

    Args:
        profile: the profile.
        after: session and number of the last turn of the batch before; None: this is the first batch.
    """
    of = and_(
        memories.c.user_sub == turns.c.user_sub,
        memories.c.session_id == turns.c.session_id,
        memories.c.turn_number == turns.c.number,
    )
    session = and_(sessions.c.user_sub == turns.c.user_sub, sessions.c.id == turns.c.session_id)
    wanted = [turns.c.user_sub == profile.user_sub, sessions.c.agent_key == profile.agent_key, memories.c.id.is_(None)]
    if after is not None:
        wanted.append(tuple_(turns.c.session_id, turns.c.number) > after)
    columns = turns.c.session_id, turns.c.number, turns.c.payload
    missing = select(*columns).select_from(turns.join(sessions, session).outerjoin(memories, of))
    return missing.where(*wanted).order_by(turns.c.session_id, turns.c.number).limit(BATCH)


def unremembered_facts(profile: Profile) -> Rows:
    """Returns a statement that selects BATCH facts of the profile without a memory, by rising id."""
    of = and_(memories.c.user_sub == facts.c.user_sub, memories.c.fact_id == facts.c.id)
    mine = facts.c.user_sub == profile.user_sub, facts.c.agent_key == profile.agent_key, memories.c.id.is_(None)
    missing = select(facts.c.id, facts.c.words).select_from(facts.outerjoin(memories, of))
    return missing.where(*mine).order_by(facts.c.id).limit(BATCH)
