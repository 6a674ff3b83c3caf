"""Whoever takes rows off a queue gets all that are due, users taking turns."""

import random

import asyncpg
import pytest

from retrieval.tables.sessions import sessions
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


async def test_after_the_last_user_the_first_ones_begin_again_at_once(bank: Bank, user: str):
    users = [f"{user}-{name}" for name in "abc"]
    for each in users:
        for number in range(3):
            await say(bank, each, f"chat {number}")
    queue = Queue(bank.database, sessions, PACE, random.Random(0), "sessions.read_failed")
    batches = [[held.user_sub for held in await queue.take(4)] for _ in range(4)]
    assert list(map(len, batches)) == [4, 4, 1, 0]
    assert sorted(each for batch in batches for each in batch) == sorted(users * 3)
    assert set(batches[0]) == set(users)
