"""A rotation loses no user's key, wherever it is broken off, and brings back none that was erased."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from sqlalchemy import event, select

from retrieval.database.database import Database
from retrieval.errors import SealBroken
from retrieval.tables.keys import master_keys, user_keys
from tests.writer.privacy.conftest import as_new, key_of, start
from writer.privacy.installation_key import find_or_make
from writer.privacy.master_keys import MasterKeyMismatch, MasterKeys, fingerprint
from writer.privacy.rotation import NothingToRotate, Rotation, RotationOvertaken, rotate
from writer.privacy.words import Words
from writer.rights.erase import erase

OLD, NEW, THIRD = os.urandom(32), os.urandom(32), os.urandom(32)
USERS = ["alice", "bob", "carol"]


class Killed(BaseException):
    """The process ended here."""


async def keys_of(database: Database, users: list[str], *held: bytes) -> dict[str, Words]:
    return {user: await key_of(database, user, *held) for user in users}


async def wrapped_by(database: Database) -> dict[str, str]:
    async with database.as_worker() as connection:
        rows = await connection.execute(select(user_keys.c.user_sub, user_keys.c.master_key))
        return dict(rows.all())


async def statuses(database: Database) -> dict[str, str]:
    async with database.as_worker() as connection:
        rows = await connection.execute(select(master_keys.c.fingerprint, master_keys.c.status))
        return dict(rows.all())


@contextmanager
def killed_before(database: Database, statement: int) -> Iterator[None]:
    """Ends the process just before that statement of those inside, the commits counted as statements, too."""
    left = iter(range(statement))

    def step(*_: object) -> None:
        if next(left, None) is None:
            raise Killed

    engine = database.engine.sync_engine
    for name in ("before_cursor_execute", "commit"):
        event.listen(engine, name, step)
    try:
        yield
    finally:
        for name in ("before_cursor_execute", "commit"):
            event.remove(engine, name, step)


async def rotated(database: Database, new: bytes, *old: bytes) -> Rotation:
    return await rotate(database, MasterKeys.of(new, *old))


async def test_every_users_key_is_wrapped_anew_and_stays_what_it_was(database: Database):
    await start(database, OLD)
    before = await keys_of(database, USERS, OLD)
    done = await rotated(database, NEW, OLD)
    assert (done.rewrapped, done.left, done.new, done.old) == (3, 0, fingerprint(NEW), (fingerprint(OLD),))
    assert done.finished_at >= done.began_at
    assert await keys_of(database, USERS, NEW) == before
    assert await statuses(database) == {fingerprint(NEW): "current", fingerprint(OLD): "retired"}


async def test_after_it_the_old_key_alone_starts_no_process_and_the_new_one_does(database: Database):
    await start(database, OLD)
    await keys_of(database, USERS, OLD)
    await rotated(database, NEW, OLD)
    with pytest.raises(MasterKeyMismatch):
        await start(database, OLD)
    await start(database, NEW)


async def test_the_installations_own_keys_open_during_and_after_it_and_stay_what_they_were(database: Database):
    async def own(*held: bytes) -> bytes:
        async with database.as_worker() as connection:
            return (await find_or_make(connection, MasterKeys.of(*held), "audit"))[0]

    await start(database, OLD)
    await key_of(database, "alice", OLD)
    before = await own(NEW, OLD)
    assert await own(OLD) == before  # step 1 of a rotation: nothing changes yet
    await rotated(database, NEW, OLD)
    assert await own(NEW) == before
    with pytest.raises(SealBroken):
        await own(OLD)
    assert not (await rotated(database, NEW, OLD)).now


async def test_broken_off_before_any_statement_it_loses_nothing_and_the_receipt_of_the_end_counts_all(
    database: Database, url: str
):
    for reached in count():
        await as_new(url)
        await start(database, OLD)
        before = await keys_of(database, USERS[:2], OLD)
        try:
            with killed_before(database, reached):
                await rotated(database, NEW, OLD)
        except Killed:
            await can_go_on(database, before)
        else:
            break
    assert reached > 20


async def can_go_on(database: Database, before: dict[str, Words]) -> None:
    """Whatever was done: who holds both starts, reads every user and makes new ones, and ends the rotation."""
    await start(database, OLD, NEW)
    assert await keys_of(database, list(before), OLD, NEW) == before
    before["dave"] = await key_of(database, "dave", OLD, NEW)
    done = await rotated(database, NEW, OLD)
    assert done.rewrapped in {2, 3}  # dave's, where the rotation had not begun
    assert (done.left, done.old) == (0, (fingerprint(OLD),))
    assert await keys_of(database, list(before), NEW) == before
    with pytest.raises(MasterKeyMismatch):
        await start(database, OLD)


async def test_half_way_every_process_needs_both(database: Database):
    await start(database, OLD)
    await keys_of(database, USERS, OLD)

    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        await rotate(database, MasterKeys.of(NEW, OLD), die)
    assert sorted((await wrapped_by(database)).values()) == sorted([fingerprint(NEW), *2 * [fingerprint(OLD)]])
    for held in (OLD, NEW):
        with pytest.raises(MasterKeyMismatch):
            await start(database, held)
    await start(database, NEW, OLD)
    await start(database, OLD, NEW)


async def test_it_can_be_taken_back_half_way(database: Database):
    await start(database, OLD)
    before = await keys_of(database, USERS, OLD)
    with pytest.raises(Killed), killed_before(database, 20):
        await rotated(database, NEW, OLD)
    done = await rotated(database, OLD, NEW)
    assert (done.new, done.left) == (fingerprint(OLD), 0)
    await start(database, OLD)
    assert await keys_of(database, USERS, OLD) == before


async def test_new_users_meanwhile_get_the_new_key_and_none_slips_through_with_the_old(database: Database):
    await start(database, OLD)
    await keys_of(database, USERS, OLD)
    names = [f"new-{number}" for number in range(60)]
    held = (OLD, NEW)  # processes that have not been told yet which of the two is wanted
    made, done = await asyncio.gather(
        asyncio.gather(*(key_of(database, name, *held) for name in names)), rotated(database, NEW, OLD)
    )
    assert done.left == 0
    assert set((await wrapped_by(database)).values()) == {fingerprint(NEW)}
    assert [await key_of(database, name, NEW) for name in names] == made


async def test_a_key_that_an_erasure_destroyed_meanwhile_does_not_come_back(database: Database):
    users = [f"user-{number:02}" for number in range(60)]
    await start(database, OLD)
    before = await keys_of(database, users, OLD)
    erased, *_ = await asyncio.gather(
        asyncio.gather(*(erase(database, user) for user in users[::2])), rotated(database, NEW, OLD)
    )
    assert all(receipt.clean for receipt in erased)
    assert set(await wrapped_by(database)) == set(users[1::2])
    assert await keys_of(database, users[1::2], NEW) == {user: before[user] for user in users[1::2]}


async def test_two_at_once_to_the_same_key_count_each_user_once(database: Database):
    users = [f"user-{number:02}" for number in range(40)]
    await start(database, OLD)
    before = await keys_of(database, users, OLD)
    both = await asyncio.gather(rotated(database, NEW, OLD), rotated(database, NEW, OLD))
    assert {(done.rewrapped, done.left) for done in both} == {(40, 0)}
    assert await keys_of(database, users, NEW) == before


async def test_another_rotation_that_begins_meanwhile_ends_this_one(database: Database):
    await start(database, OLD)
    before = await keys_of(database, USERS, OLD)
    with pytest.raises(Killed), killed_before(database, 22):
        await rotated(database, THIRD, OLD, NEW)
    overtaken = asyncio.create_task(rotated(database, NEW, OLD, THIRD))
    last = await asyncio.gather(overtaken, rotated(database, THIRD, OLD, NEW), return_exceptions=True)
    assert all(isinstance(each, Rotation | RotationOvertaken) for each in last)
    assert (await rotated(database, THIRD, OLD, NEW)).left == 0
    assert await keys_of(database, USERS, THIRD) == before


async def test_a_users_key_that_nothing_opens_is_left_and_told_until_its_key_is_brought(database: Database):
    await keys_of(database, USERS[:2], OLD)
    stray = await key_of(database, "carol", THIRD)  # as a replica with a key of its own wrote it, before it was refused
    await start(database, OLD)
    done = await rotated(database, NEW, OLD)
    assert (done.rewrapped, done.left, done.finished_at) == (2, 1, None)
    await start(database, NEW, OLD)
    done = await rotated(database, NEW, OLD, THIRD)
    assert (done.rewrapped, done.left) == (3, 0)
    assert await key_of(database, "carol", NEW) == stray


async def test_a_stray_replicas_users_are_brought_over_to_the_key_that_stays(database: Database):
    await keys_of(database, USERS[:2], OLD)
    stray = await key_of(database, "carol", THIRD)
    await start(database, OLD)
    assert (await rotated(database, OLD, THIRD)).left == 0
    assert await key_of(database, "carol", OLD) == stray


async def test_where_nothing_is_to_be_rotated_it_says_so_and_where_it_was_the_receipt_comes_again(database: Database):
    await start(database, OLD)
    await keys_of(database, USERS, OLD)
    with pytest.raises(NothingToRotate, match="CASEBANK_MASTER_KEY_OLD"):
        await rotated(database, OLD)
    first = await rotated(database, NEW, OLD)
    again = await rotated(database, NEW, OLD)
    assert (first.now, again.now) == (True, False)
    assert again.as_dict() == first.as_dict()


async def test_a_key_that_is_in_use_and_not_at_hand_stops_it_before_anything_is_changed(database: Database):
    await start(database, OLD)
    await keys_of(database, USERS, OLD)
    with pytest.raises(MasterKeyMismatch):
        await rotated(database, NEW)
    assert await statuses(database) == {fingerprint(OLD): "current"}
