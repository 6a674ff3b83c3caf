"""A body is as large as it says, and never larger than it may be."""

import pytest
from starlette.types import Message

from app.edge.intake.body import announced, read_body
from app.edge.intake.errors import BodyIncomplete, BodyTooLarge


@pytest.mark.parametrize(("said", "room"), [("0", 0), ("100", 100), ("000000000000000000000000099", 99), ("000", 0)])
def test_a_body_needs_the_room_that_it_announces(said: str, room: int):
    assert announced(said, 100) == room


@pytest.mark.parametrize("said", [None, "", "-1", "many", "1.5", "0x10"])
def test_a_body_that_announces_nothing_needs_all_the_room_that_it_may_take(said: str | None):
    assert announced(said, 100) == 100


@pytest.mark.parametrize("said", ["101", "9" * 5_000, "000000000000000000000000101"])
def test_a_body_that_announces_too_much_is_refused(said: str):
    with pytest.raises(BodyTooLarge):
        announced(said, 100)


async def test_a_body_that_grows_too_large_is_read_no_further():
    pieces = iter(range(1, 100))

    async def receive() -> Message:
        return {"type": "http.request", "body": b"x" * 40, "more_body": next(pieces) < 99}

    with pytest.raises(BodyTooLarge):
        await read_body(receive, 100)
    assert next(pieces) == 4


async def test_half_a_body_is_none():
    messages = iter(
        [
            {"type": "http.request", "body": b"{", "more_body": True},
            {"type": "http.disconnect"},
        ]
    )

    async def receive() -> Message:
        return next(messages)

    with pytest.raises(BodyIncomplete):
        await read_body(receive, 100)
