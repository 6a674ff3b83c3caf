"""Appending to a session: beside its deletion, after the database's clock was put back, and of long turns."""

import asyncio
from datetime import UTC, datetime

import asyncpg

from policy.channels import searchable
from tests.writer.blocked import begin_blocked
from tests.writer.conftest import AGENT, Bank, calls_on_the_loop
from tests.writer.under_way import say
from writer.sessions.append import append_turns
from writer.sessions.lock import delete_session, lock_session
from writer.sessions.prepare import TurnsTold, prepare_turns


async def test_a_turn_that_waited_for_the_deletion_of_its_session_begins_a_new_one(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    await say(bank, user, "chat", "hello")
    async with asyncio.timeout(60):
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await lock_session(connection, user, "chat")
            saying = await begin_blocked(owner, say(bank, user, "chat", "again"))
            await delete_session(connection, bank.author(user), "chat")
        appended = await saying
    assert (appended.first, appended.turn_count) == (1, 1)


async def test_a_turn_without_a_time_is_taken_after_the_clock_was_put_back(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    await say(bank, user, "chat", "hello")
    for table, column in (("turns", "said_at"), ("sessions", "last_turn_at")):
        later = f"UPDATE {table} SET {column} = now() + interval '1 hour' WHERE user_sub = $1"  # noqa: S608 - two names
        await owner.execute(later, user)
    assert (await say(bank, user, "chat", "again")).last == 2


async def test_the_words_of_turns_are_prepared_for_the_index_before_the_turns_come_to_the_event_loop(
    bank: Bank, user: str
):
    turns = [{"role": "user", "content": "hello"}, {"role": "user", "content": None}]
    prepared = prepare_turns(TurnsTold.model_validate({"agent": AGENT, "turns": turns}))
    assert [turn.text for turn in prepared.turns] == ["user: hello", ""]
    with calls_on_the_loop(searchable) as callers:
        await append_turns(bank.database, bank.keyring, "chat", prepared, bank.author(user))
    assert callers == []
