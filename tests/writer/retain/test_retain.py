"""Retain: one key is one case, however many send it at once."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import select

from retrieval.tables.audit import audit
from tests.cluster import one_postgres
from tests.fakes.openai_server import OpenAIServer
from tests.writer.conftest import (
    Bank,
    MakeWorker,
    drain,
    keep,
    states,
)
from writer.errors import IdempotencyConflict, MemoryOff


@pytest.fixture(
    params=[pytest.param(False, marks=one_postgres), True], ids=["by one statement", "by values, as on a cluster"]
)
def any_bank(bank: Bank, request: pytest.FixtureRequest) -> Bank:
    return replace(bank, database=replace(bank.database, citus=request.param))


async def test_twenty_equal_retains_with_one_key_are_one_case_and_one_entry_of_the_audit(
    bank: Bank, any_bank: Bank, server: OpenAIServer, worker_on: MakeWorker, user: str
):
    ids = await asyncio.gather(*(keep(any_bank, user, key="monday") for _ in range(20)))
    assert len(set(ids)) == 1
    assert [row.id for row in await states(bank, user)] == ids[:1]
    await drain(worker_on(server))
    (entry,) = await bank.read(user, select(audit).where(audit.c.user_sub == user))
    assert (entry.action, entry.subject_id, entry.actor) == ("insert_case", ids[0], bank.author(user).actor)


async def test_of_twenty_different_retains_with_one_key_one_is_kept(bank: Bank, any_bank: Bank, user: str):
    runs = (keep(any_bank, user, f"task {number}", key="monday") for number in range(20))
    answers = await asyncio.gather(*runs, return_exceptions=True)
    (row,) = await states(bank, user)
    assert Counter(type(answer).__name__ for answer in answers) == {"UUID": 1, "IdempotencyConflict": 19}
    assert [answer for answer in answers if not isinstance(answer, IdempotencyConflict)] == [row.id]


async def test_a_run_is_refused_while_memory_is_off(bank: Bank, any_bank: Bank, user: str):
    await keep(any_bank, user)
    await bank.set_profile(user, writing=False)
    with pytest.raises(MemoryOff):
        await keep(any_bank, user, "sweep the yard")
    assert len(await states(bank, user)) == 1
