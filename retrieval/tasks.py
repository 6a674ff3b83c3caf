"""Tasks of asyncio: whether the current one was cancelled, and works that go on beside each other or beside it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")


def is_cancelled() -> bool:
    """Returns whether the current task was cancelled, also if a library turned the cancellation into another error."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def all_ended(works: Iterable[Awaitable[None]]) -> None:
    """Awaits works, which go on beside each other.

    Raises:
        BaseException: the first error of the works, in their order; it is raised when all of them have ended.
    """
    for error in await asyncio.gather(*works, return_exceptions=True):
        if error is not None:
            raise error


@asynccontextmanager
async def started(work: Coroutine[Any, Any, Result]) -> AsyncIterator[asyncio.Task[Result]]:
    """Starts the work, runs the block as soon as the work waits, and waits for the end of the work, a task.

    What the work waits for, such as the database, is busy while the block computes. If the block fails or is cancelled,
    the work is cancelled.

    Raises:
        Exception: the work failed.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.sleep(0)  # the work runs up to where it waits first
        yield task
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
