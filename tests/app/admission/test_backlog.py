"""The bound on the queue: each has a part of it, and who is refused is told when to come back."""

import asyncio
import os
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import select, update

from app.admission.backlog import Backlog, PendingBounds
from app.admission.errors import BacklogFull, QueueFull
from app.postgres.pools import dsn, service_database
from retrieval.database.database import Database
from retrieval.tables.cases import cases
from tests.clock import Clock
from tests.writer.conftest import Bank
from writer.privacy.keys import Keyring

PER_USER, IN_ALL = 10, 40


@pytest.fixture
async def bank(database_url: str) -> AsyncIterator[Bank]:
    """A bank with nothing in the queue."""
    owner = await asyncpg.connect(dsn(database_url))
    await owner.execute("DELETE FROM cases")
    await owner.close()
    async with service_database(database_url) as database:
        yield Bank(database, Keyring(os.urandom(32)))


def backlog(database: Database) -> Backlog:
    return Backlog(database, PendingBounds(PER_USER, IN_ALL), Clock(100.0))


async def pile_up(bank: Bank, *numbers: int) -> list[str]:
    """Makes up a user for each number, with so many pending cases."""
    users = [f"user-{uuid4()}" for _ in numbers]
    for user, number in zip(users, numbers, strict=True):
        await bank.add(user, *({"status": "pending"} for _ in range(number)))
    return users


async def work_off(bank: Bank, user: str, number: int) -> None:
    """Takes so many of the user's cases off the queue."""
    waiting = select(cases.c.id).where(cases.c.user_sub == user, cases.c.status == "pending").limit(number)
    async with bank.database.as_worker() as connection:
        await connection.execute(
            update(cases).where(cases.c.user_sub == user, cases.c.id.in_(waiting)).values(status="dead")
        )


async def test_a_user_has_no_more_pending_than_the_bound_and_others_have_room(bank: Bank):
    flood, guest = await pile_up(bank, PER_USER, 1)
    known = backlog(bank.database)
    await known.look()
    with pytest.raises(BacklogFull):
        known.check(flood)
    known.check(guest)


async def test_what_this_process_took_since_it_looked_counts_as_well(bank: Bank):
    (user,) = await pile_up(bank, PER_USER - 1)
    known = backlog(bank.database)
    await known.look()
    known.check(user)
    known.took(user)
    with pytest.raises(BacklogFull):
        known.check(user)
    await known.look()  # the process took none after all, as far as the database knows
    known.check(user)


async def test_what_is_taken_while_the_database_looks_counts_as_well(bank: Bank, database_url: str):
    (user,) = await pile_up(bank, 2)
    known = backlog(bank.database)
    await known.look()
    owner = await asyncpg.connect(dsn(database_url))
    async with owner.transaction():
        await owner.execute("LOCK TABLE cases IN ACCESS EXCLUSIVE MODE")
        looking = asyncio.create_task(known.look())
        while not await owner.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)
        for _ in range(PER_USER - 2):
            known.took(user)
    await looking
    await owner.close()
    with pytest.raises(BacklogFull):
        known.check(user)


async def test_as_the_queue_fills_those_who_filled_it_are_refused_first(bank: Bank):
    *_, much, little = await pile_up(bank, 9, 9, 9, 8, 1)
    known = backlog(bank.database)
    await known.look()  # 36 of 40: a fifth of the bound is what one may have now
    assert known.in_all == 36
    with pytest.raises(QueueFull):
        known.check(much)
    known.check(little)
    known.check("somebody new")


async def test_a_full_queue_takes_nobodys(bank: Bank):
    await pile_up(bank, 10, 10, 10, 10)
    known = backlog(bank.database)
    await known.look()
    with pytest.raises(QueueFull):
        known.check("somebody new")


async def test_what_an_operator_backfills_for_one_user_does_not_fill_the_queue_for_others(bank: Bank):
    (much,) = await pile_up(bank, 3 * IN_ALL)
    known = backlog(bank.database)
    await known.look()
    assert known.in_all == PER_USER
    with pytest.raises(BacklogFull):
        known.check(much)
    known.check("somebody new")


async def test_who_is_refused_is_told_when_the_workers_will_have_made_room(bank: Bank):
    flood, _guest = await pile_up(bank, 19, 3)
    known = Backlog(bank.database, PendingBounds(10, 1000), Clock(100.0))
    await known.look()
    await work_off(bank, flood, 8)  # in two seconds
    known.clock.now += 2
    await known.look()
    assert known.rate == pytest.approx(4)
    with pytest.raises(BacklogFull) as refused:
        known.check(flood)
    assert refused.value.retry_s == pytest.approx((11 - 9) / (4 / 2))  # half of the workers' turns are the flood's


async def test_a_wait_is_never_longer_than_an_hour(bank: Bank):
    (flood,) = await pile_up(bank, 15)
    known = Backlog(bank.database, PendingBounds(1, 100_000), Clock(100.0))
    await known.look()
    known._pending[flood] = 10**6  # noqa: SLF001 - too many to insert
    with pytest.raises(BacklogFull) as refused:
        known.check(flood)
    assert refused.value.retry_s == 3600


async def test_without_bounds_everybody_has_room(bank: Bank):
    (flood,) = await pile_up(bank, 50)
    known = Backlog(bank.database, PendingBounds(0, 0), Clock(100.0))
    await known.look()
    known.check(flood)


async def test_without_the_bound_of_one_user_the_queue_is_still_bounded(bank: Bank):
    (flood,) = await pile_up(bank, IN_ALL - 1)
    known = Backlog(bank.database, PendingBounds(0, IN_ALL), Clock(100.0))
    await known.look()
    known.check(flood)
    known.took(flood)
    with pytest.raises(QueueFull):
        known.check("somebody new")


async def test_without_the_bound_of_all_a_user_is_still_bounded(bank: Bank):
    flood, guest = await pile_up(bank, PER_USER, 1)
    known = Backlog(bank.database, PendingBounds(PER_USER, 0), Clock(100.0))
    await known.look()
    with pytest.raises(BacklogFull):
        known.check(flood)
    known.check(guest)
