"""Retain: one key is one case, however many send it at once."""

import asyncio
import hashlib
from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import select, update

from app.postgres import EmbeddedPostgres
from app.postgres.migrate import migrate
from app.postgres.pools import service_database
from retrieval.tables.audit import audit
from retrieval.tables.cases import cases
from tests.cluster import one_postgres
from tests.conftest import new_database
from tests.fakes.openai_server import OpenAIServer
from tests.writer.conftest import (
    AGENT,
    MASTER_KEY,
    Bank,
    MakeWorker,
    drain,
    keep,
    states,
)
from writer.errors import IdempotencyConflict, MemoryOff
from writer.privacy.keys import Keyring
from writer.retain.prepare import prepare
from writer.rights.erase import erase
from writer.run import FinishedRun


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


@pytest.mark.parametrize("seals_words", [True, False])
async def test_the_hash_of_a_request_takes_the_users_key_so_that_no_pin_can_be_tried(
    bank: Bank, any_bank: Bank, user: str, *, seals_words: bool
):
    sealing = replace(any_bank, keyring=Keyring(MASTER_KEY, seals_words=seals_words))
    task = "open the door, the pin is 4821"
    ids = [await keep(sealing, whose, task, key="monday") for whose in (user, user, f"{user}-2")]
    assert ids[0] == ids[1] != ids[2]
    with pytest.raises(IdempotencyConflict):
        await keep(sealing, user, task.replace("4821", "4822"), key="monday")
    guess = prepare(FinishedRun(agent=AGENT, task=task, outcome="success")).request_hash
    hashes = [row.request_hash for whose in (user, f"{user}-2") for row in await states(bank, whose)]
    assert len({guess, *hashes}) == 3


async def test_a_repeat_of_a_run_from_before_hashes_were_keyed_is_the_same_case(bank: Bank, any_bank: Bank, user: str):
    case_id = await keep(any_bank, user, key="monday")
    plain = prepare(FinishedRun(agent=AGENT, task="water the garden", outcome="success")).request_hash
    async with bank.database.as_user(user, bank.author(user).authorised_at) as connection:
        await connection.execute(update(cases).where(cases.c.user_sub == user).values(request_hash=plain))
    assert await keep(any_bank, user, key="monday") == case_id
    with pytest.raises(IdempotencyConflict):
        await keep(any_bank, user, "sweep the yard", key="monday")


async def test_a_migration_clears_the_hashes_of_requests_and_keeps_all_else(postgres: EmbeddedPostgres, user: str):
    url = await new_database(postgres)
    async with service_database(url) as database:
        bank = Bank(database, Keyring(MASTER_KEY))
        await keep(bank, user, key="monday")
        (before,) = await states(bank, user)
    await migrate(url, "0014_own_reward")
    await migrate(url)
    async with service_database(url) as database:
        (after,) = await states(replace(bank, database=database), user)
    assert before.request_hash != after.request_hash == b""
    assert after._asdict() == {**before._asdict(), "request_hash": b""}


async def test_a_run_whose_hash_was_cleared_is_the_case_of_its_key_alone(bank: Bank, any_bank: Bank, user: str):
    case_id = await keep(any_bank, user, key="monday")
    async with bank.database.as_user(user, bank.author(user).authorised_at) as connection:
        await connection.execute(update(cases).where(cases.c.user_sub == user).values(request_hash=b""))
    assert await keep(any_bank, user, key="monday") == case_id
    assert await keep(any_bank, user, "sweep the yard", key="monday") == case_id
    assert await keep(any_bank, user, key="tuesday") != case_id


async def test_a_key_that_looks_secret_is_stored_as_a_hash_that_takes_the_users_key(
    bank: Bank, any_bank: Bank, user: str
):
    key = "order of ada@example.com"
    ids = [await keep(any_bank, whose, key=key) for whose in (user, user, f"{user}-2")]
    assert ids[0] == ids[1] != ids[2]
    with pytest.raises(IdempotencyConflict):
        await keep(any_bank, user, "sweep the yard", key=key)
    names = [row.idempotency_key for whose in (user, f"{user}-2") for row in await states(bank, whose)]
    plain = f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
    assert len({key, plain, *names}) == 4
    async with bank.database.as_user(user, bank.author(user).authorised_at) as connection:
        await connection.execute(update(cases).where(cases.c.user_sub == user).values(idempotency_key=plain))
    assert await keep(any_bank, user, key=key) == ids[0]  # of an older version


async def test_a_process_that_remembers_the_key_from_before_an_erasure_knows_a_repeat(
    bank: Bank, any_bank: Bank, user: str
):
    await keep(any_bank, user)
    await erase(bank.database, user)
    case_id = await keep(replace(bank, keyring=Keyring(MASTER_KEY)), user, key="monday")
    assert await keep(any_bank, user, key="monday") == case_id
