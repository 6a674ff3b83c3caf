"""The reckoning: no fault in a bank that matches its acknowledgements, and every fault in one that does not."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from bench.faults.ledger import Acknowledged, Ledger, Reward
from bench.faults.reckoning import reckon
from tests.service import User


@pytest.fixture
async def bank(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the owner, to a bank that is emptied afterwards."""
    connection = await asyncpg.connect(database_url.replace("+asyncpg", ""))
    yield connection
    await connection.execute("TRUNCATE cases, decisions, audit CASCADE")
    await connection.close()


@pytest.fixture
async def ledger(alice: User) -> Ledger:
    """What a backend was told that retained three runs, the last two after a retrieve, and rewarded these.

    One of them at once, as a rule before the worker passes on what the run earned, the other after it.
    """
    ledger = Ledger()
    for number in range(3):
        found = await alice.retrieve("feed the cat") if number else None
        body = {
            "agent": "operator",
            "task": f"feed cat number {number}",
            "outcome": "success",
            "plan": [f"try {number}"],
        }
        if found is not None:
            body |= {"retrieval_id": found["retrieval_id"]}
        answer = (await alice.http.post("/v1/retain", json=body, headers={"Idempotency-Key": f"key-{number}"})).json()
        ledger.retains[f"key-{number}"] = Acknowledged(answer["case_id"], answer["retrieval_id"])
        if number == 2:
            await alice.settle()
        if found is not None:
            await alice.feedback(retrieval_id=found["retrieval_id"], reward=0.25)
            ledger.rewards[found["retrieval_id"]] = Reward(0.25, sent=1)
        await alice.settle()
    return ledger


async def faults(bank: asyncpg.Connection, ledger: Ledger) -> set[str]:
    return {fault.name for fault in await reckon(bank, ledger) if fault.cases}


async def test_a_bank_that_is_as_it_was_acknowledged_has_no_fault(bank: asyncpg.Connection, ledger: Ledger):
    assert await faults(bank, ledger) == set()


@pytest.mark.parametrize(
    ("damage", "found"),
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
async def test_every_kind_of_damage_is_found(bank: asyncpg.Connection, ledger: Ledger, damage: str, found: str):
    await bank.execute(damage)
    assert found in await faults(bank, ledger)
