"""Whoever takes rows off a queue gets all that are due, users taking turns."""

import random
from collections import Counter
from dataclasses import replace

import asyncpg
import pytest

from retrieval.tables.cases import cases
from retrieval.tables.sessions import sessions
from tests.cluster import one_postgres
from tests.writer.conftest import AGENT, PACE, Bank
from writer.queue.queue import Queue
from writer.sessions.append import append_turns
from writer.sessions.prepare import TurnsTold, prepare_turns


@pytest.fixture(autouse=True)
async def emptied(owner: asyncpg.Connection) -> None:
    await owner.execute("UPDATE sessions SET status = 'ready' WHERE status <> 'ready'")


async def say(bank: Bank, user: str, name: str) -> None:
    told = TurnsTold.model_validate({"agent": AGENT, "turns": [{"role": "user", "content": "I live in York."}]})
    await append_turns(bank.database, bank.keyring, name, prepare_turns(told), bank.author(user))


@pytest.fixture(
    params=[pytest.param(False, marks=one_postgres), True], ids=["one Postgres", "by user, as on a cluster"]
)
def queue(bank: Bank, request: pytest.FixtureRequest) -> Queue:
    database = replace(bank.database, citus=request.param)
    return Queue(database, sessions, PACE, random.Random(0), "sessions.read_failed")


async def test_after_the_last_user_the_first_ones_begin_again_at_once(bank: Bank, queue: Queue, user: str):
    users = [f"{user}-{name}" for name in "abc"]
    for each in users:
        for number in range(3):
            await say(bank, each, f"chat {number}")
    batches = [[held.user_sub for held in await queue.take(4)] for _ in range(4)]
    assert list(map(len, batches)) == [4, 4, 1, 0]
    assert sorted(each for batch in batches for each in batch) == sorted(users * 3)
    assert set(batches[0]) == set(users)


async def test_a_turn_is_a_quarter_of_a_batch_and_who_has_more_gets_what_is_left(bank: Bank, queue: Queue, user: str):
    flood, guest, last = (f"{user}-{name}" for name in ("flood", "guest", "last"))
    for number in range(9):
        await say(bank, flood, f"chat {number}")
    await say(bank, guest, "chat")
    await say(bank, last, "chat")
    assert Counter(held.user_sub for held in await queue.take(8)) == {flood: 6, guest: 1, last: 1}
    assert Counter(held.user_sub for held in await queue.take(8)) == {flood: 3}


@pytest.mark.parametrize("name", ["a", "c"])
async def test_behind_two_thousand_cases_of_one_user_the_next_claim_has_the_case_of_another(
    bank: Bank, queue: Queue, user: str, owner: asyncpg.Connection, name: str
):
    flood, guest = f"{user}-b", f"{user}-{name}"
    await bank.add(flood, *[{"status": "pending"}] * 2_000)
    queue = replace(queue, table=cases)
    assert Counter(held.user_sub for held in await queue.take(PACE.batch)) == {flood: PACE.batch}
    await bank.add(guest, {"status": "pending"})
    assert Counter(held.user_sub for held in await queue.take(PACE.batch)) == {flood: PACE.batch - 1, guest: 1}


async def test_a_session_whose_worker_died_fills_up_no_batch_though_its_user_goes_on(
    bank: Bank, queue: Queue, user: str, owner: asyncpg.Connection
):
    first, suspect, last = (f"{user}-{name}" for name in "abc")
    await say(bank, first, "chat")
    assert [held.user_sub for held in await queue.take(1)] == [first]
    await say(bank, suspect, "chat")
    another = replace(queue, pace=PACE)
    assert [held.user_sub for held in await another.take(1)] == [suspect]  # and is never heard of again
    await owner.execute("UPDATE sessions SET available_at = now() WHERE user_sub = $1", suspect)
    await say(bank, suspect, "chat")
    await say(bank, last, "chat")
    assert [held.user_sub for held in await queue.take(16)] == [suspect]
