"""Room for large bodies: no more bytes than the total are held, and nobody holds all of them."""

import asyncio

import pytest
from fastapi import Request
from starlette.types import Message, Receive

from app.edge.intake.aside import Aside
from app.edge.intake.errors import Busy
from app.edge.intake.room import Room
from app.edge.intake.route import UNCOUNTED_BYTES, Intake


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


async def test_bodies_that_arrive_slowly_leave_their_room_to_a_user_who_has_none():
    size = UNCOUNTED_BYTES + 1
    intake = Intake(size, Room(4 * size, 2), Aside(1, 1, given_up_after_s=1, patience_s=1))
    scope = {"type": "http", "headers": [(b"content-length", b"%d" % size)]}

    async def stall() -> Message:
        return await asyncio.Future()

    async def send(user: str, receive: Receive) -> bytes:
        async with intake.body(Request(scope, receive), user) as body:
            return body

    async def whole() -> Message:
        return {"type": "http.request", "body": b"x" * size}

    stalled = [asyncio.create_task(send(user, stall)) for user in ("mallory", "mallet") * 10]
    for _ in range(10):
        await asyncio.sleep(0)
    assert await send("carol", whole) == b"x" * size
    for task in stalled:
        task.cancel()
    reasons = {str(each) for each in await asyncio.gather(*stalled, return_exceptions=True) if isinstance(each, Busy)}
    assert "the request arrived too slowly while others waited for its room" in reasons


async def test_a_slow_body_keeps_its_room_while_only_its_own_user_waits():
    room = Room(8, 0.2)
    async with room.held("alice", 4) as arrival, arrival:
        with pytest.raises(Busy):
            async with room.held("alice", 4):
                pass
        async with room.held("bob", 4):
            pass
