"""Room for large bodies: no more bytes than the total are held, and nobody holds all of them."""

import asyncio

import pytest

from app.edge.intake.errors import Busy
from app.edge.intake.room import Room


async def test_a_body_waits_for_room_and_gets_it_when_another_leaves():
    room = Room(10, 60)
    entered = asyncio.Event()

    async def another() -> None:
        async with room.held("bob", 5):
            entered.set()

    async with room.held("alice", 5), room.held("carol", 5):
        waiting = asyncio.create_task(another())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not entered.is_set()
    await waiting
    assert entered.is_set()


async def test_one_user_holds_no_more_than_a_share():
    room = Room(10, 0.01)
    async with room.held("alice", 5):
        with pytest.raises(Busy):
            async with room.held("alice", 1):
                pass
        async with room.held("bob", 5):
            pass


async def test_one_body_gets_in_whatever_the_settings():
    room = Room(10, 0.01)
    async with room.held("alice", 1_000):
        with pytest.raises(Busy):
            async with room.held("bob", 1):
                pass
    async with room.held("bob", 1):
        pass


async def test_room_that_was_never_given_is_not_given_back():
    room = Room(10, 0.01)
    async with room.held("alice", 5):
        for _ in range(3):
            with pytest.raises(Busy):
                async with room.held("alice", 5):
                    pass
        async with room.held("bob", 5):
            with pytest.raises(Busy):
                async with room.held("carol", 1):
                    pass
