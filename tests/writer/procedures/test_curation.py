"""Versions changed by hand: pinned, unpinned and retired."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from retrieval.errors import NotFound
from tests.writer.conftest import Bank
from tests.writer.procedure_bank import (
    PLAN,
    ask,
    calls,
    failing_run,
    finish,
    noted,
    stored,
    the_one,
    two_versions,
    versions,
)
from writer.procedures import curation


async def test_what_was_retired_does_not_come_back_as_a_new_procedure(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    row = await the_one(bank, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        assert await curation.retire(connection, bank.author(user), row.id) == 1
    await finish(bank, user, plan=PLAN)
    row = await the_one(bank, user)
    assert (row.status, row.occurrences) == ("retired", 2)
    assert (await ask(bank, user)).procedures == []


async def test_a_pinned_version_is_not_replaced(bank: Bank, user: str):
    await finish(bank, user, tool_traces=calls("drain", "restart"))
    row = await the_one(bank, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await curation.pin(connection, bank.author(user), row.id, 1, pinned=True)
    await failing_run(bank, user, row.id)
    assert await versions(bank, user, row.id) == [(1, "active")]


async def test_a_pin_brings_any_version_back_and_there_is_never_more_than_one_active(bank: Bank, user: str):
    procedure_id = await two_versions(bank, user, 1.0)
    for version in (1, 2, 1):
        async with bank.database.as_user(user, datetime.now(UTC)) as connection:
            await curation.pin(connection, bank.author(user), procedure_id, version, pinned=True)
        rows = [row for row in await stored(bank, user) if row.id == procedure_id]
        assert [row.version for row in rows if row.status == "active"] == [version]
        assert [row.version for row in rows if row.pinned] == [version]
    assert len(await noted(bank, user, "pin_procedure")) == 3


async def test_what_is_not_there_is_neither_pinned_nor_retired(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    row = await the_one(bank, user)
    thief = bank.author(f"{user}-b")
    attempts = [
        (user, lambda c: curation.pin(c, bank.author(user), row.id, 2, pinned=True)),
        (user, lambda c: curation.retire(c, bank.author(user), uuid4())),
        (thief.user_sub, lambda c: curation.pin(c, thief, row.id, 1, pinned=True)),
        (thief.user_sub, lambda c: curation.retire(c, thief, row.id)),
    ]
    for name, attempt in attempts:
        with pytest.raises(NotFound):
            async with bank.database.as_user(name, datetime.now(UTC)) as connection:
                await attempt(connection)
    assert (await the_one(bank, user)).status == "active"
