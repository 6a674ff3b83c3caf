"""Sessions in the queue: each turn is read once, whoever reads it, and one that cannot be read stops no other."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import DatabaseUnavailable
from retrieval.tables.memories import facts, memories
from retrieval.tables.sessions import sessions, turns
from tests.cluster import one_postgres
from tests.fakes.openai_server import OpenAIServer
from tests.writer.blocked import both_at_once
from tests.writer.conftest import AGENT, PACE, Bank, MakeWorker, calls_on_the_loop, drain, keep
from writer.facts.extract import MOST_OF_TURN
from writer.facts.remove import close_fact, delete_fact
from writer.privacy.seal import unseal_sized
from writer.queue import statements
from writer.queue.sessions import MOST_FACTS
from writer.queue.worker import Worker
from writer.sessions.append import append_turns
from writer.sessions.lock import delete_session
from writer.sessions.prepare import TurnsTold, prepare_turns


async def say(bank: Bank, user: str, name: str, *said: str) -> None:
    told = TurnsTold.model_validate({"agent": AGENT, "turns": [{"role": "user", "content": text} for text in said]})
    await append_turns(bank.database, bank.keyring, name, prepare_turns(told), bank.author(user))


async def sessions_of(bank: Bank, user: str) -> dict[str, Any]:
    rows = await bank.read(user, select(sessions).where(sessions.c.user_sub == user))
    return {row.name: row for row in rows}


async def told(bank: Bank, user: str) -> list[tuple[int, int]]:
    """How often each fact was told, with the number of its turn."""
    columns = select(facts.c.turn_number, facts.c.told).where(facts.c.user_sub == user)
    return [tuple(row) for row in await bank.read(user, columns.order_by(facts.c.turn_number))]


@pytest.fixture(autouse=True)
async def emptied(owner: asyncpg.Connection) -> None:
    await owner.execute("UPDATE sessions SET status = 'ready' WHERE status <> 'ready'")


async def test_several_workers_read_each_turn_once(bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str):
    for number in range(8):
        await say(bank, user, f"chat {number}", f"I really enjoy hobby number {number}.", "I see.")
    workers = [worker_on(server, replace(PACE, batch=2)) for _ in range(4)]
    await asyncio.gather(*map(drain, workers))
    assert await told(bank, user) == [(1, 1)] * 8
    assert {(row.status, row.read_turns) for row in (await sessions_of(bank, user)).values()} == {("ready", 2)}


async def test_what_is_said_later_is_read_later_and_nothing_twice(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    worker = worker_on(server)
    await say(bank, user, "chat", "I live in York.")
    await drain(worker)
    await say(bank, user, "chat", "I'm allergic to peanuts.")
    await drain(worker)
    assert await told(bank, user) == [(1, 1), (2, 1)]


async def test_a_long_session_is_read_in_several_goes(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    for first in (0, 150):
        await say(bank, user, "chat", *(f"I really enjoy hobby number {first + each}." for each in range(150)))
    await drain(worker_on(server))
    assert len(await told(bank, user)) == 300
    assert (await sessions_of(bank, user))["chat"].status == "ready"


def very_many_likes(turn: int) -> str:
    return " ".join(f"I like w{turn}q{number}." for number in range(MOST_OF_TURN + 10))


async def test_a_session_of_very_many_facts_is_read_in_several_goes(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    turns_at_once = MOST_FACTS // MOST_OF_TURN
    await say(bank, user, "chat", *map(very_many_likes, range(turns_at_once + 2)))
    worker = worker_on(server)
    await worker.sessions.queue.serve(1, worker.sessions.handle)
    session = (await sessions_of(bank, user))["chat"]
    assert (session.status, session.read_turns) == ("pending", turns_at_once)
    assert await told(bank, user) == [(1 + each // MOST_OF_TURN, 1) for each in range(MOST_FACTS)]
    await drain(worker)
    assert (await sessions_of(bank, user))["chat"].read_turns == turns_at_once + 2
    assert len(await told(bank, user)) == MOST_FACTS + 2 * MOST_OF_TURN


async def test_what_was_said_in_a_session_that_is_deleted_is_not_learned_from_its_run_afterwards(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await say(bank, user, "chat", "I live in York.")
    await keep(bank, user, session_id="chat")
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_session(connection, bank.author(user), "chat")
    await drain(worker_on(server))
    assert await told(bank, user) == []


async def test_the_facts_in_a_run_of_a_session_that_does_not_exist_are_stored(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await keep(bank, user, session_id="chat", turns=[{"role": "user", "content": "I live in York."}])
    await drain(worker_on(server))
    assert len(await facts_of(bank, user)) == 1


async def test_the_facts_in_a_run_of_a_session_with_turns_are_read_with_the_session(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await say(bank, user, "chat", "I live in York.")
    await keep(bank, user, session_id="chat", turns=[{"role": "user", "content": "I live in York."}])
    await drain(worker_on(server))
    assert await told(bank, user) == [(1, 1)]


async def read_while(
    bank: Bank,
    owner: asyncpg.Connection,
    worker: Worker,
    late: str,
    change: Callable[[AsyncConnection], Awaitable[None]],
) -> None:
    """Reads a session, and begins the change while the worker waits for ``late``, a table that it writes late."""
    (held,) = await worker.sessions.queue.take(16)

    async def read() -> None:
        assert await worker.sessions.queue.attempt([held], worker.sessions.read(held)) == "ready"

    async def make_change() -> None:
        async with bank.database.as_user(held.user_sub, datetime.now(UTC)) as connection:
            await change(connection)

    await both_at_once(owner, late, read(), make_change())


async def facts_of(bank: Bank, user: str) -> list[Any]:
    columns = select(facts.c.id, facts.c.valid_to).where(facts.c.user_sub == user)
    return await bank.read(user, columns.order_by(facts.c.valid_from))


async def test_a_session_that_is_deleted_while_a_worker_reads_it_leaves_no_fact_and_neither_waits_in_vain(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, owner: asyncpg.Connection
):
    worker = worker_on(server)
    await say(bank, user, "chat", "I live in York.")
    await drain(worker)
    await say(bank, user, "chat", "I live in York.")

    async def delete(connection: AsyncConnection) -> None:
        await delete_session(connection, bank.author(user), "chat")

    await read_while(bank, owner, worker, "sessions", delete)
    assert await facts_of(bank, user) == []


async def test_a_fact_that_is_deleted_while_a_newer_one_closes_it_leaves_one_that_holds(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, owner: asyncpg.Connection
):
    worker = worker_on(server)
    for town in ("York", "Leeds"):
        await say(bank, user, "chat", f"I live in {town}.")
        await drain(worker)
    await say(bank, user, "chat", "I live in Bath.")
    leeds = (await facts_of(bank, user))[1]

    async def delete(connection: AsyncConnection) -> None:
        await delete_fact(connection, bank.author(user), leeds.id)

    await read_while(bank, owner, worker, "memories", delete)
    assert [row.valid_to is None for row in await facts_of(bank, user)] == [False, True]


async def test_a_fact_that_is_ended_while_a_worker_counts_it_again_stays_ended(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, owner: asyncpg.Connection
):
    worker = worker_on(server)
    await say(bank, user, "chat", "I live in York.")
    await drain(worker)
    await say(bank, user, "chat", "I live in York.", "I really enjoy chess.")
    (york,) = await facts_of(bank, user)

    async def end(connection: AsyncConnection) -> None:
        await close_fact(connection, bank.author(user), AGENT, york.id)

    await read_while(bank, owner, worker, "memories", end)
    assert [row.valid_to is None for row in await facts_of(bank, user)] == [False, True]


async def test_a_session_that_cannot_be_read_is_given_up_and_stops_no_other(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, owner: asyncpg.Connection
):
    await say(bank, user, "broken", "I live in York.")
    broken = (await sessions_of(bank, user))["broken"].id
    async with bank.database.as_user(user, bank.author(user).authorised_at) as connection:
        await connection.execute(update(turns).where(turns.c.session_id == broken).values(payload=b"changed"))
    await say(bank, user, "whole", "I live in Leeds.")
    worker = worker_on(server)
    for _ in range(PACE.max_attempts):
        await drain(worker)
        await owner.execute("UPDATE sessions SET available_at = now() WHERE status = 'pending'")
    states = await sessions_of(bank, user)
    assert (states["whole"].status, states["broken"].status) == ("ready", "dead")
    assert states["broken"].last_error == "SealBroken"
    assert len(await told(bank, user)) == 1
    async with bank.database.as_worker() as connection:
        assert len((await connection.execute(statements.requeue_dead(user, sessions))).all()) == 1
    assert (await sessions_of(bank, user))["broken"].status == "pending"


async def test_a_turn_that_cannot_be_read_is_left_out_and_hides_no_other(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await say(bank, user, "chat", "I live in York.", "I'm allergic to peanuts.")
    async with bank.database.as_user(user, bank.author(user).authorised_at) as connection:
        broken = turns.c.user_sub == user, turns.c.number == 1
        await connection.execute(update(turns).where(*broken).values(payload=b"changed"))
    await drain(worker_on(server))
    assert await told(bank, user) == [(2, 1)]
    assert (await sessions_of(bank, user))["chat"].read_turns == 2


async def test_turns_are_decrypted_for_facts_and_vectors_beside_the_event_loop(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    await say(bank, user, "chat", "I live in York.")
    worker = worker_on(server)
    with calls_on_the_loop(unseal_sized) as callers:
        await drain(worker)
    assert callers == []
    assert await told(bank, user) == [(1, 1)]


async def test_a_session_that_takes_its_workers_down_is_given_up_though_its_user_goes_on(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    queue = worker_on(server, replace(PACE, lease=timedelta(0))).sessions.queue  # the next worker finds it dead
    await say(bank, user, "chat", "I live in York.")
    for _ in range(PACE.max_attempts):
        assert len(await queue.take(16)) == 1
        await say(bank, user, "chat", "And you?")
    assert await queue.take(16) == []
    assert (await sessions_of(bank, user))["chat"].status == "dead"
    await say(bank, user, "chat", "Hello?")
    assert [lease.attempts for lease in await queue.take(16)] == [1]


@one_postgres
async def test_a_session_on_which_the_database_breaks_off_each_time_stops_no_other_queue(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, owner: asyncpg.Connection
):
    await say(bank, user, "chat", "I live in York.")
    await owner.execute(
        "CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE 'as a server that stops' USING ERRCODE = '57P01'; END $$"
    )
    await owner.execute(
        "CREATE TRIGGER breaks_off BEFORE UPDATE OF read_turns ON sessions FOR EACH ROW EXECUTE FUNCTION break_off()"
    )
    worker = worker_on(server)
    try:
        for _ in range(3):
            with suppress(DatabaseUnavailable):
                await worker.run_once()
    finally:
        await owner.execute("DROP FUNCTION break_off CASCADE")
    (turn,) = await bank.read(user, select(memories.c.status).where(memories.c.user_sub == user))
    assert turn.status == "ready"
    await owner.execute("UPDATE sessions SET available_at = now() WHERE status = 'pending'")
    await drain(worker)
    assert await told(bank, user) == [(1, 1)]


async def test_a_worker_that_comes_too_late_stores_nothing(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str, owner: asyncpg.Connection
):
    await say(bank, user, "chat", "I live in York.")
    worker = worker_on(server)
    (held,) = [each for each in await worker.sessions.queue.take(16) if each.user_sub == user]
    await owner.execute("UPDATE sessions SET available_at = now() WHERE user_sub = $1", user)
    await drain(worker_on(server))
    assert await worker.sessions.queue.attempt([held], worker.sessions.read(held)) == "LeaseLost"
    assert await told(bank, user) == [(1, 1)]
    count = select(func.count()).select_from(facts).where(facts.c.user_sub == user)
    assert (await bank.read(user, count))[0][0] == 1
