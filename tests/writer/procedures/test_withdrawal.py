"""What becomes of procedures when the case that they were learned from is deleted."""

from datetime import UTC, datetime

from tests.writer.conftest import Bank
from tests.writer.procedure_bank import PLAN, TASK, finish, stored, the_one, two_versions, versions
from writer.procedures import curation
from writer.rights.edit import delete_case


async def test_deleting_a_case_deletes_what_is_made_of_its_words_and_takes_it_off_the_sources(bank: Bank, user: str):
    first = await finish(bank, user, plan=PLAN)
    second = await finish(bank, user, f"please {TASK}", plan=PLAN)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_case(connection, bank.keyring, bank.author(user), second)
    assert (await the_one(bank, user)).source_case_ids == [first]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_case(connection, bank.keyring, bank.author(user), first)
    assert await stored(bank, user) == []


async def test_deleting_the_run_behind_a_revision_brings_the_version_before_back(bank: Bank, user: str):
    procedure_id = await two_versions(bank, user, 1.0)
    (revision,) = [row for row in await stored(bank, user) if row.version == 2]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await delete_case(connection, bank.keyring, bank.author(user), revision.case_id)
    assert await versions(bank, user, procedure_id) == [(1, "active")]


async def test_deleting_the_run_behind_a_retired_revision_keeps_the_procedure_out_of_use(bank: Bank, user: str):
    procedure_id = await two_versions(bank, user, 1.0)
    (revision,) = [row for row in await stored(bank, user) if row.version == 2]
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await curation.retire(connection, bank.author(user), procedure_id)
        await delete_case(connection, bank.keyring, bank.author(user), revision.case_id)
    assert await versions(bank, user, procedure_id) == [(1, "retired")]
