"""Retain: one key is one case, however many send it at once."""

import asyncio
from collections import Counter

import asyncpg
from sqlalchemy import select

from retrieval.tables.audit import audit
from tests.fakes.openai_server import OpenAIServer
from tests.writer.conftest import (
    Bank,
    MakeWorker,
    drain,
    keep,
    states,
)
from writer.errors import IdempotencyConflict


async def test_twenty_equal_retains_with_one_key_are_one_case_and_one_entry_of_the_audit(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    ids = await asyncio.gather(*(keep(bank, user, key="monday") for _ in range(20)))
    assert len(set(ids)) == 1
    assert [row.id for row in await states(bank, user)] == ids[:1]
    await drain(worker_on(server))
    (entry,) = await bank.read(user, select(audit).where(audit.c.user_sub == user))
    assert (entry.action, entry.subject_id, entry.actor) == ("insert_case", ids[0], bank.author(user).actor)


async def test_of_twenty_different_retains_with_one_key_one_is_kept(bank: Bank, owner: asyncpg.Connection, user: str):
    runs = (keep(bank, user, f"task {number}", key="monday") for number in range(20))
    answers = await asyncio.gather(*runs, return_exceptions=True)
    (row,) = await states(bank, user)
    assert Counter(type(answer).__name__ for answer in answers) == {"UUID": 1, "IdempotencyConflict": 19}
    assert [answer for answer in answers if not isinstance(answer, IdempotencyConflict)] == [row.id]
