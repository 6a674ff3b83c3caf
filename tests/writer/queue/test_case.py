"""A claimed case: read by whoever holds its lease alone, with its profile's terms, and closed once."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import uuid_utils.compat as uuids

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.sealed import CaseWords
from retrieval.tables.cases import cases
from tests.cluster import one_postgres
from tests.writer.conftest import AGENT, MASTER_KEY, Bank, drain, keep, states, wake_all
from tests.writer.queue.test_lessons import both_at_once
from writer.privacy.keys import Keyring
from writer.queue import statements
from writer.queue.case import ClaimedCase, Work, claimed, close, lock_held
from writer.queue.lease import Lease
from writer.queue.worker import Worker
from writer.upkeep.reseal import reseal_all


async def claim(bank: Bank, lease: timedelta = timedelta(minutes=1)) -> list[Lease]:
    token = uuids.uuid7()
    async with bank.database.as_worker() as connection:
        given = {"token": token, "lease": lease, "batch": 16, "after": "", "died_too": True}
        rows = (await connection.execute(statements.claim(cases), given)).all()
    return [Lease(row.user_sub, row.id, row.agent_key, row.attempts, token, row.claimed_at) for row in rows]


async def read(bank: Bank, user: str, token: UUID, *case_ids: UUID) -> list[ClaimedCase]:
    return [ClaimedCase(*row) for row in await bank.read(user, claimed(user, token, case_ids))]


@one_postgres
async def test_a_claimed_case_is_read_as_it_was_retained_with_the_terms_of_its_profile(bank: Bank, user: str):
    case_id = await keep(
        bank, user, "water the garden", plan=["turn the tap"], tags=["green"], reward=0.25, reward_source="metric"
    )
    await bank.set_profile(user, abstraction="off", least_success=0.5)
    (held,) = await claim(bank)
    (case,) = await read(bank, user, held.lease_token, case_id)
    assert (case.id, case.agent_key, case.task, case.plan, case.tags) == (
        case_id,
        AGENT,
        "water the garden",
        ["turn the tap"],
        ["green"],
    )
    assert (case.outcome, case.reward, case.reward_source, case.error_count) == ("success", 0.25, "metric", 0)
    assert (case.analyst, case.abstraction, case.least_success) == ("rules", "off", 0.5)
    work = Work(held, case, text=CaseWords(case.task, case.plan))
    assert case.is_new
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await close(connection, [work], {})


@one_postgres
async def test_a_case_is_read_and_closed_by_whoever_holds_its_lease_and_once(bank: Bank, user: str):
    case_id = await keep(bank, user)
    (late,) = await claim(bank, timedelta(0))
    (held,) = await claim(bank)
    assert await read(bank, user, late.lease_token, case_id) == []
    (case,) = await read(bank, user, held.lease_token, case_id)
    work = Work(held, case, terms=[1, -2], moves=[3, 3])
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        assert await lock_held(connection, [Work(late, case, terms=[9], moves=[9])]) == []
        assert await lock_held(connection, [work]) == [work]
        await close(connection, [work], {})
        assert await lock_held(connection, [work]) == []
    (row,) = await states(bank, user)
    assert (row.status, row.lease_token, row.terms, row.moves) == ("ready", None, [1, -2], [3, 3])


async def test_no_plain_plan_is_stored_in_a_case_that_was_sealed_while_a_worker_held_it(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    calls = [
        {"tool": "find", "input": {"street": "Elm Row"}, "output": "Error: no such street"},
        {"tool": "find", "input": {"street": "Elm Road"}, "output": "found"},
    ]
    case_id = await keep(bank, user, tool_traces=calls)
    worker = Worker(bank.database, WordLlamaEmbedder(), bank.keyring)
    batch = await worker.cases.read(await worker.cases.queue.take(1))
    await reseal_all(bank.database, Keyring(MASTER_KEY, seals_words=True))
    await worker.cases.finish_together(batch)
    await wake_all(owner)  # the lease ends
    await drain(worker)
    (row,) = await states(bank, user)
    assert (row.id, row.status, row.words is not None, "Elm" in str(row.plan)) == (case_id, "ready", True, False)


async def test_cases_are_sealed_while_a_worker_merges_a_repeat_and_neither_waits_in_vain(
    bank: Bank, user: str, owner: asyncpg.Connection
):
    worker, sealing = Worker(bank.database, WordLlamaEmbedder(), bank.keyring), Keyring(MASTER_KEY, seals_words=True)
    await reseal_all(bank.database, sealing)  # the cases of other tests
    for _ in range(2):
        await keep(bank, user)
    await worker.cases.queue.serve(1, worker.cases.handle)
    merge = worker.cases.handle(await worker.cases.queue.take(1))
    await both_at_once(owner, "cases", merge, reseal_all(bank.database, sealing))
    rows = await states(bank, user)
    assert [(row.status, row.words is not None) for row in rows] == [("ready", True), ("merged", True)]


def test_the_record_has_a_column_of_the_case_or_of_its_profile_for_each_field():
    names = {column.name for column in claimed("user", uuids.uuid7(), []).selected_columns}
    assert names == set(ClaimedCase.__slots__)
    assert names - {"analyst", "abstraction", "least_success", "embedding_model", "is_new"} <= {
        column.name for column in cases.c
    }
