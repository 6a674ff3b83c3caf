"""The reckoning: no fault in a bank that matches its acknowledgements, and every fault in one that does not."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from app.postgres.pools import dsn
from bench.faults.ledger import Acknowledged, Ledger, Reward
from bench.faults.reckoning import reckon
from tests.service import Service


@pytest.fixture
async def bank(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the owner in a transaction that is rolled back: each damage is seen by its own test only."""
    connection = await asyncpg.connect(dsn(database_url))
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


@pytest.fixture(scope="module")
async def ledger(service: Service) -> Ledger:
    """The acknowledgements of three retained runs, the last two after a retrieve, and of rewards for these.

    One reward comes at once, as a rule before the worker passes on the run's own, the other after it.
    """
    alice, ledger = await service.user(), Ledger()
    for number in range(3):
        retrieved = await alice.retrieve("feed the cat") if number else None
        body = {
            "agent": "operator",
            "task": f"feed cat number {number}",
            "outcome": "success",
            "plan": [f"try {number}"],
        }
        if retrieved is not None:
            body |= {"retrieval_id": retrieved["retrieval_id"]}
        answer = (await alice.http.post("/v1/retain", json=body, headers={"Idempotency-Key": f"key-{number}"})).json()
        ledger.retains[f"key-{number}"] = Acknowledged(answer["case_id"], answer["retrieval_id"])
        if number == 2:
            await alice.settle()
        if retrieved is not None:
            await alice.feedback(retrieval_id=retrieved["retrieval_id"], reward=0.25)
            ledger.rewards[retrieved["retrieval_id"]] = Reward(0.25, sent=1)
        await alice.settle()
    return ledger


async def faults(bank: asyncpg.Connection, ledger: Ledger) -> set[str]:
    return {fault.name for fault in await reckon(bank, ledger) if fault.cases}


async def test_a_bank_that_matches_its_acknowledgements_has_no_fault(ledger: Ledger, bank: asyncpg.Connection):
    assert await faults(bank, ledger) == set()


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("DELETE FROM cases WHERE idempotency_key = 'key-0'", "acknowledged retains lost"),
        (
            "UPDATE cases SET idempotency_key = 'nobody knows' WHERE idempotency_key = 'key-0'",
            "cases without an acknowledgement, or two for one retain",
        ),
        ("UPDATE cases SET status = 'dead' WHERE idempotency_key = 'key-1'", "cases stuck or dead"),
        ("UPDATE cases SET occurrences = 5 WHERE idempotency_key = 'key-0'", "repeats counted wrongly"),
        ("UPDATE cases SET retrieval_id = NULL WHERE idempotency_key = 'key-2'", "links to a retrieval lost"),
        ("DELETE FROM rewards WHERE source = 'user' AND actor <> 'worker'", "acknowledged rewards lost"),
        ("DELETE FROM rewards WHERE actor = 'worker'", "rewards of runs counted other than once"),
        ("UPDATE decisions SET reward = 0.75", "retrievals with another reward than the one that counts"),
        ("UPDATE cases SET reuse_count = reuse_count + 1", "reuse records that the log does not bear out"),
    ],
)
async def test_every_kind_of_damage_is_found(ledger: Ledger, bank: asyncpg.Connection, damage: str, fault: str):
    await bank.execute(damage)
    assert fault in await faults(bank, ledger)
