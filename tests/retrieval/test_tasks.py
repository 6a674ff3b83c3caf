"""Work that goes on while the current task computes."""

import asyncio

import pytest

from retrieval.tasks import started


async def test_the_work_has_begun_when_the_block_runs_and_has_ended_after_it():
    begun, answered = asyncio.Event(), asyncio.Event()

    async def ask() -> str:
        begun.set()
        await answered.wait()
        return "an answer"

    async with started(ask()) as asking:
        assert begun.is_set()
        assert not asking.done()
        answered.set()
    assert asking.result() == "an answer"


async def test_an_error_of_the_work_is_raised_at_the_end_of_the_block():
    async def refuse() -> None:
        raise ConnectionError("no answer")

    reached = False
    with pytest.raises(ConnectionError, match="no answer"):
        async with started(refuse()):
            reached = True
    assert reached


async def test_work_has_ended_when_the_block_fails():
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # as a driver that takes its statement back
            ended.set()

    with pytest.raises(ValueError, match="no number"):
        async with started(wait()):
            raise ValueError("no number")
    assert ended.is_set()


async def test_work_has_ended_when_its_caller_is_cancelled():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()

    async def call() -> None:
        async with started(wait()):
            pass

    calling = asyncio.create_task(call())
    await begun.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert ended.is_set()
