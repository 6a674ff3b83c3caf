"""Pruning and procedures: which outlive their case, which expire, and which are too many."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import update

from retrieval.tables.cases import cases
from retrieval.tables.procedures import procedures
from tests.writer.conftest import Bank
from tests.writer.procedure_bank import DAY, PLAN, TASK, ask, finish, noted, stored, the_one
from writer.procedures import curation
from writer.upkeep.prune import prune


async def age(bank: Bank, user: str, days: int) -> None:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        long_ago = datetime.now(UTC) - timedelta(days=days)
        await connection.execute(update(cases).where(cases.c.user_sub == user).values(created_at=long_ago))


async def test_a_procedure_outlives_the_case_that_the_window_crowds_out(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    await age(bank, user, 5)
    await bank.add(user, {"task": "another"})
    await bank.set_profile(user, window_size=1)
    now = datetime.now(UTC)
    await prune(bank.database, bank.profile(user), now=now)
    assert (await the_one(bank, user)).case_id is not None
    await prune(bank.database, bank.profile(user), now=now + 40 * DAY)
    row = await the_one(bank, user)
    assert (row.status, row.case_id, row.source_case_ids) == ("active", None, [])
    assert [each.id for each in (await ask(bank, user)).procedures] == [row.id]


async def test_a_procedure_leaves_with_the_case_that_expires(bank: Bank, user: str):
    await finish(bank, user, plan=PLAN)
    await age(bank, user, 5)
    await bank.set_profile(user, ttl_days=3)
    await prune(bank.database, bank.profile(user), now=datetime.now(UTC))
    assert await stored(bank, user) == []


async def test_a_procedure_that_outlived_its_case_expires_when_nobody_uses_it(bank: Bank, user: str):
    for task in (TASK, "Translate the letter", "Bake a cake"):
        await finish(bank, user, task, plan=[f"{task} well"])
    now = datetime.now(UTC)
    used, pinned, _ = await stored(bank, user)
    async with bank.database.as_user(user, now) as connection:
        mine = update(procedures).where(procedures.c.user_sub == user)
        await connection.execute(mine.values(case_id=None, created_at=now - 5 * DAY))
        await connection.execute(mine.where(procedures.c.id == used.id).values(last_used_at=now))
        await curation.pin(connection, bank.author(user), pinned.id, 1, pinned=True)
    assert (await prune(bank.database, bank.profile(user), now=now))["procedures"] == 0
    await bank.set_profile(user, ttl_days=3)
    assert (await prune(bank.database, bank.profile(user), now=now))["procedures"] == 1
    assert [row.id for row in await stored(bank, user)] == [used.id, pinned.id]


async def test_a_profile_keeps_so_many_procedures_and_the_least_worth_go(bank: Bank, user: str):
    for task in (TASK, "Translate the letter", "Water the garden", "Tune the piano", "Bake a cake"):
        await finish(bank, user, task, plan=[f"{task} well"])
    pinned, useful, *_ = await stored(bank, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await curation.pin(connection, bank.author(user), pinned.id, 1, pinned=True)
        await connection.execute(update(procedures).where(procedures.c.id == useful.id).values(uses=4, use_reward=4))
    pruned = [await prune(bank.database, bank.profile(user), now=datetime.now(UTC), procedures_kept=3) for _ in "ab"]
    assert [each["procedures"] for each in pruned] == [2, 0]
    assert [row.trigger for row in await stored(bank, user)] == [TASK, "Translate the letter", "Bake a cake"]
    assert len(await noted(bank, user, "prune_procedure")) == 2
